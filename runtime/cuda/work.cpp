// What the tasks of the device are for the driver.
#include "cuda/graph.h"
#include "cuda/program.h"
#include "cuda/queues.h"

namespace kiln::cuda {
namespace {

using rt::Task;

CUdeviceptr address(const void* p) { return reinterpret_cast<CUdeviceptr>(p); }

constexpr std::uint64_t kMostPitch = 0x7fffffff;  // of the driver's copies of rows

// One copy of the driver's where it takes the pitches, else one a row.
CUresult copy_rows(const DriverEntries& call, const Task& task, void* to, const void* from, CUmemorytype to_kind, CUmemorytype from_kind,
                   CUstream stream) {
  const bool to_host = to_kind == CU_MEMORYTYPE_HOST, from_host = from_kind == CU_MEMORYTYPE_HOST;
  if (task.rows > 1 && task.to_pitch <= kMostPitch && task.from_pitch <= kMostPitch) {
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = from_kind;
    if (from_host) copy.srcHost = from;
    else copy.srcDevice = address(from);
    copy.srcPitch = task.from_pitch;
    copy.dstMemoryType = to_kind;
    if (to_host) copy.dstHost = to;
    else copy.dstDevice = address(to);
    copy.dstPitch = task.to_pitch;
    copy.WidthInBytes = task.bytes;
    copy.Height = task.rows;
    return call.cuMemcpy2DAsync(&copy, stream);
  }
  for (std::uint64_t row = 0; row < task.rows; ++row) {
    auto* const target = static_cast<std::byte*>(to) + row * task.to_pitch;
    const auto* const source = static_cast<const std::byte*>(from) + row * task.from_pitch;
    const CUresult r = to_host     ? call.cuMemcpyDtoHAsync(target, address(source), task.bytes, stream)
                       : from_host ? call.cuMemcpyHtoDAsync(address(target), source, task.bytes, stream)
                                   : call.cuMemcpyDtoDAsync(address(target), address(source), task.bytes, stream);
    if (r != CUDA_SUCCESS) return r;
  }
  return CUDA_SUCCESS;
}

}  // namespace

Work work_of(const CudaTask& task) {
  switch (task.kind) {
    case Task::Kind::Launch: return {&static_cast<const Program&>(*task.program).kernel(), Phase::Launch, "launching the kernel"};
    case Task::Kind::Copy: return {nullptr, Phase::Transfer, "copying on the device"};
    case Task::Kind::Zero: return {nullptr, Phase::Transfer, "filling with zeros"};
    case Task::Kind::Upload: return {nullptr, Phase::Transfer, "copying to the device"};
    case Task::Kind::Download: return {nullptr, Phase::Transfer, "copying from the device"};
    case Task::Kind::Graph: return {&static_cast<const CudaGraph&>(*task.graph).name(), Phase::Launch, "replaying a graph"};
    case Task::Kind::Marker: return {nullptr, Phase::Wait, "marking a stream"};
    case Task::Kind::Host:
    case Task::Kind::Call: break;
  }
  return {nullptr, Phase::Transfer, "calling the host"};
}

CUresult give(const DriverEntries& call, CudaTask& task, CUstream stream) {
  switch (task.kind) {
    case Task::Kind::Launch: {
      CUlaunchAttribute attributes[2];
      const CUlaunchConfig config =
          driver_config(task.grid, task.block, task.cluster, task.cooperative, task.dynamic_shared, stream, attributes);
      return call.cuLaunchKernelEx(&config, static_cast<const Program&>(*task.program).function(), task.fields.data(), nullptr);
    }
    case Task::Kind::Copy: return copy_rows(call, task, task.to, task.from, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_DEVICE, stream);
    case Task::Kind::Zero: return call.cuMemsetD8Async(address(task.to), 0, task.bytes, stream);
    case Task::Kind::Upload: return copy_rows(call, task, task.to, task.from, CU_MEMORYTYPE_DEVICE, CU_MEMORYTYPE_HOST, stream);
    case Task::Kind::Download: return copy_rows(call, task, task.to, task.from, CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE, stream);
    case Task::Kind::Graph: return call.cuGraphLaunch(static_cast<const CudaGraph&>(*task.graph).exec(), stream);
    case Task::Kind::Marker:
    case Task::Kind::Host:
    case Task::Kind::Call: break;
  }
  return CUDA_SUCCESS;
}

}  // namespace kiln::cuda
