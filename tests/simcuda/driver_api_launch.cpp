// Entry points: launches and host functions.
#include <cstring>

#include "simcuda/driver_launch.h"
#include "simcuda/driver_state.h"

namespace kiln::simcuda {
namespace {

// What a launch carries until it has run.
struct Prepared {
  std::shared_ptr<LoadedModule> module;
  std::shared_ptr<Memory> memory;
  std::vector<std::byte> params;
  Launch launch;
  std::string name;
};

// The caller's values, copied into the layout of the kernel's parameters: they may change as soon as the call has returned.
CUresult copy_params(const EntryInfo& info, void** params, void** extra, std::vector<std::byte>& bytes) {
  bytes.assign(info.param_bytes, std::byte{0});
  if (params != nullptr && extra != nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (extra != nullptr) {
    // CU_LAUNCH_PARAM_END 0, CU_LAUNCH_PARAM_BUFFER_POINTER 1, CU_LAUNCH_PARAM_BUFFER_SIZE 2
    const void* buffer = nullptr;
    const std::size_t* size = nullptr;
    for (; extra[0] != nullptr; extra += 2) {
      const auto key = reinterpret_cast<std::uintptr_t>(extra[0]);
      if (key == 1) buffer = extra[1];
      else if (key == 2) size = static_cast<const std::size_t*>(extra[1]);
      else return CUDA_ERROR_INVALID_VALUE;
    }
    if (buffer == nullptr || size == nullptr || *size < info.param_bytes) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(bytes.data(), buffer, bytes.size());
    return CUDA_SUCCESS;
  }
  if (info.params.empty()) return CUDA_SUCCESS;
  if (params == nullptr) return CUDA_ERROR_INVALID_VALUE;
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    if (params[i] == nullptr) return CUDA_ERROR_INVALID_VALUE;
    std::memcpy(bytes.data() + info.params[i].offset, params[i], info.params[i].size);
  }
  return CUDA_SUCCESS;
}

// Every allocation that an aligned word of the parameters points into.
std::vector<Use> uses_of(Driver& driver, const std::vector<std::byte>& params) {
  std::vector<Use> uses;
  for (std::size_t at = 0; at + 8 <= params.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, params.data() + at, sizeof word);
    std::uint64_t begin = 0, bytes = 0;
    if (driver.owner(word, &begin, &bytes) != nullptr) uses.push_back({begin, bytes});
    else if (const auto it = driver.pinned(reinterpret_cast<void*>(word), 1); it != driver.pinned_memory.end())
      uses.push_back({it->first, it->second.bytes});
  }
  return uses;
}

std::optional<Failure> run_kernel(Driver& driver, const Prepared& p, const Options& options) {
  const RunResult result = run(p.launch, *p.memory, options);
  driver.instructions += result.instructions;
  if (!result.notes.empty()) {
    const Lock lock(driver.mutex);
    for (const std::string& note : result.notes) driver.report("kernel '" + p.name + "': " + note);
  }
  if (!result.violation.has_value()) return std::nullopt;
  return Failure{result.violation->code, "kernel '" + p.name + "': " + result.violation->text()};
}

std::shared_ptr<const Work> kernel_work(Driver& driver, const Function& function, Context& context, const LaunchShape& shape,
                                        std::vector<std::byte> params) {
  auto prepared = std::make_shared<Prepared>();
  prepared->module = function.module;
  prepared->memory = function.module->memory;
  prepared->params = std::move(params);
  prepared->name = function.info().name;
  Launch& launch = prepared->launch;
  launch.module = function.module->code.get();
  launch.entry = function.entry;
  launch.grid = shape.grid;
  launch.block = shape.block;
  launch.cluster = shape.cluster;
  launch.dynamic_shared = shape.dynamic_shared;
  launch.params = prepared->params.data();
  launch.cooperative = shape.cooperative;
  auto work = std::make_shared<Work>();
  work->kind = Work::Kind::Kernel;
  work->context = &context;
  work->name = prepared->name;
  work->module = function.module;
  work->uses = uses_of(driver, prepared->params);
  work->run = [prepared, &driver, options = driver.script.engine] { return run_kernel(driver, *prepared, options); };
  return work;
}

}  // namespace
}  // namespace kiln::simcuda

namespace kiln::cuda {
using namespace kiln::simcuda;

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction handle, void** params, void** extra) {
  return context_entry_point(Entry::cuLaunchKernelEx, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
    Function* function = nullptr;
    KILN_SIMCUDA_TRY(driver.function(handle, function));
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(config->hStream, context, stream));
    if (stream->context != &context) return CUDA_ERROR_INVALID_HANDLE;
    LaunchShape shape;
    KILN_SIMCUDA_TRY(read_shape(*config, *function, shape));
    KILN_SIMCUDA_TRY(check_launch(*function, shape));
    // A null driver copies the parameters, since a real one does, and does nothing else.
    if (driver.script.null_launches && driver.script.kernels.empty() && stream->capture == nullptr) {
      KILN_SIMCUDA_TRY(driver.legacy_rule(*stream));
      ++driver.launches;
      return copy_params(function->info(), params, extra, driver.null_params);
    }
    std::vector<std::byte> bytes;
    KILN_SIMCUDA_TRY(copy_params(function->info(), params, extra, bytes));
    return driver.enqueue(*stream, kernel_work(driver, *function, context, shape, std::move(bytes)));
  });
}

CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void* user_data) {
  return context_entry_point(Entry::cuLaunchHostFunc, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (function == nullptr) return CUDA_ERROR_INVALID_VALUE;
    auto work = std::make_shared<Work>();
    work->kind = Work::Kind::Host;
    work->context = stream->context;
    work->name = "a host function";
    work->run = [function, user_data]() -> std::optional<Failure> {
      this_thread().in_host_function = true;
      struct Leave {
        ~Leave() { this_thread().in_host_function = false; }
      } leave;
      function(user_data);
      return std::nullopt;
    };
    return driver.enqueue(*stream, work);
  });
}

}  // namespace kiln::cuda
