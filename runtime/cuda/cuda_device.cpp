#include "cuda/cuda_device.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "cuda/device_blocks.h"
#include "cuda/graph.h"
#include "cuda/program.h"
#include "cuda/ptx_target.h"
#include "cuda/queues.h"
#include "cuda/staging_pool.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln::rt {
namespace {

using namespace kiln::cuda;

constexpr std::size_t kFaultRecords = 2048;

class CudaDevice final : public Device {
 public:
  CudaDevice(std::unique_ptr<Session> session, const CudaOptions& options)
      : session_(std::move(session)),
        queues_(*session_, *this),
        memory_(*session_, queues_),
        keep_(options.pool_limit),
        staging_(*session_, queues_) {}
  ~CudaDevice() override {
    for (std::uint32_t q = 0; q < kQueues; ++q) queues_.wait(queues_.last(q));
    const Session::Current current(*session_);
    if (records_ != nullptr) session_->call().cuMemFreeHost(records_);
  }

  Result<void> start();

  const DeviceProperties& properties() const override { return properties_; }
  std::string label() const override { return session_->label(); }
  int ordinal() const override { return session_->device(); }
  MemoryTraits memory_traits() const override {
    MemoryTraits traits;
    traits.alignment = 512;  // the driver's grain
    traits.bytes = memory_.total_bytes();
    traits.pools = MemoryPools::sub_slices(properties_);
    traits.keep = keep_ != 0 ? keep_ : memory_.total_bytes() / 4;
    traits.reuse_first = true;
    return traits;
  }
  Result<std::unique_ptr<Storage>> allocate(std::uint64_t bytes) override { return memory_.allocate(bytes); }
  std::optional<std::uint64_t> free_memory() const override { return memory_.free_bytes(); }
  void retire(std::unique_ptr<Storage> storage, const After& after) noexcept override {
    storage->after = after;
    memory_.retire(std::move(storage));
  }
  bool host_addressable() const override { return false; }
  Result<Staging> stage(std::uint64_t bytes) override { return staging_.take(bytes); }
  std::uint64_t max_staging() const override { return StagingPool::kLargest; }
  std::uint64_t row_alignment() const override { return 512; }  // what the driver's pitched allocations have

  CompileOptions compile_options(const ir::Kernel& kernel, const Dim3& block, bool aligned16) const override {
    CompileOptions options;
    options.target = TargetKind::Ptx;
    options.arch = target_;
    options.ptx_version = limits_.ptx_version;
    if (kernel.has_block_size()) options.block = kernel.block_size;
    options.block_multiple_of_32 = std::uint64_t{block.x} * block.y * block.z % 32 == 0;
    options.aligned16 = aligned16;
    return options;
  }
  Result<std::unique_ptr<DeviceProgram>> load(const CompiledCode& code, const ProgramFacts& facts) override;
  std::optional<Error> prepare(const DeviceProgram& program, const LaunchConfig& config) override {
    return static_cast<const Program&>(program).prepare(config);
  }
  bool has_occupancy() const override { return true; }
  Result<std::uint32_t> best_block(const DeviceProgram& program, std::uint32_t dynamic_shared, std::uint32_t most) override {
    return static_cast<const Program&>(program).best_block(dynamic_shared, most);
  }

  Result<std::shared_ptr<DeviceModule>> load_module(const std::string& image, const std::string& what) override;
  Result<ModuleEntry> entry(const std::shared_ptr<DeviceModule>& module, const std::string& name) override;
  Result<std::uint32_t> adopt_stream(void* stream) override;
  Result<void> release_stream(std::uint32_t queue) override {
    if (queues_.release(queue)) return {};
    return make_error(ErrorCode::Validation, "NotAdopted", "the stream is not adopted, or it was released before");
  }
  Result<void> check_foreign(std::uint64_t address, std::uint64_t bytes) override;

  Result<std::unique_ptr<DeviceGraph>> make_graph(std::span<const GraphNode> nodes, const std::string& name) override {
    auto graph = CudaGraph::make(*session_, nodes, name);
    if (!graph.has_value()) return graph.error();
    return std::unique_ptr<DeviceGraph>(std::move(*graph));
  }
  Result<Mapped> map(std::uint64_t bytes) override;
  void unmap(const Mapped& memory) noexcept override {
    const Session::Current current(*session_);
    session_->call().cuMemFreeHost(memory.host);
  }
  std::span<ir::FaultRecord> fault_records() override { return {records_, kFaultRecords}; }
  std::uint64_t fault_address() override { return records_address_; }

  Task& acquire(bool beyond) override { return queues_.take(beyond); }
  void abandon(Task& task) noexcept override { queues_.give_back(static_cast<CudaTask&>(task)); }
  Result<Event> submit(Task& task, std::uint32_t queue, const After& after) override;
  bool busy(std::uint32_t queue, const After& after) const override {
    return !queues_.over(queues_.last(queue)) || [&] {
      bool open = false;
      after.for_each([&](Event e) { open = open || !queues_.over(e); });
      return open;
    }();
  }
  void flush(std::uint32_t) override { queues_.flush(); }
  void begin_host(Task& base) override {
    auto& task = static_cast<CudaTask&>(base);
    task.kind == Task::Kind::Call ? queues_.begin_call(task) : queues_.wait(task.event);
  }
  void finish_host(Task& base) noexcept override {
    auto& task = static_cast<CudaTask&>(base);
    task.kind == Task::Kind::Call ? queues_.finish_call(task) : queues_.give_back(task);
  }

  bool done(Event event) const override { return queues_.done(event); }
  bool over(Event event) const override { return queues_.over(event) || session_->poisoned(); }
  void wait(Event event) override { queues_.wait(event); }
  Event last(std::uint32_t queue) const override { return queues_.last(queue); }
  std::optional<Error> poisoned() const override { return session_->first_failure(); }
  void trapped(const Error&) override {}  // the driver sees to it
  void ask_for_trap(std::function<std::optional<Error>()> trap) override { session_->ask_for_trap(std::move(trap)); }
  Result<void> make_mark(TimeMark& mark) override;
  void drop_mark(TimeMark& mark) noexcept override {
    const Session::Current current(*session_);
    session_->call().cuEventDestroy(static_cast<CUevent>(mark.handle));
  }
  Result<std::int64_t> nanoseconds(const TimeMark& from, const TimeMark& to) override;
  bool lost(Event event) const override { return session_->poisoned() && !queues_.over(event); }
  std::optional<Error> refused(Event event) override { return queues_.refused(event); }
  bool any_refused() const override { return queues_.any_refused(); }

 private:
  Result<Mapped> mapped(std::uint64_t bytes, Phase phase, const std::string& doing);

  const std::unique_ptr<Session> session_;
  mutable Queues queues_;
  DeviceBlocks memory_;
  const std::uint64_t keep_;
  StagingPool staging_;
  DeviceProperties properties_;
  DeviceLimits limits_;
  std::string target_;  // the architecture to compile for
  ir::FaultRecord* records_ = nullptr;
  std::uint64_t records_address_ = 0;
};

Result<void> CudaDevice::start() {
  const auto value = [&](CUdevice_attribute attribute) { return static_cast<std::uint32_t>(std::max(0, session_->attribute(attribute))); };
  const auto positive = [&](CUdevice_attribute attribute, std::uint32_t otherwise) {
    const std::uint32_t v = value(attribute);
    return v != 0 ? v : otherwise;
  };
  const std::uint32_t major = value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                      minor = value(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  limits_.capability = major * 10 + minor;
  limits_.ptx_version = ptx_of_driver(session_->driver().version);
  target_ = best_target(limits_.capability, limits_.ptx_version);
  if (target_.empty()) {
    return make_error(ErrorCode::NotFound, "ComputeCapabilityTooLow",
                      session_->name() + " has compute capability " + std::to_string(major) + "." + std::to_string(minor) +
                          ", and Kiln needs 7.5 or newer");
  }
  limits_.portable_shared = positive(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 48 * 1024);
  limits_.most_shared = std::max(limits_.portable_shared, value(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
  limits_.multiprocessors = positive(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1);
  limits_.cooperative = value(CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH) != 0;
  limits_.clusters = major >= 9 && value(CU_DEVICE_ATTRIBUTE_CLUSTER_LAUNCH) != 0;

  properties_.name = session_->name();
  properties_.kind = "cuda";
  properties_.arch = target_;
  properties_.max_grid = {positive(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 0x7fffffff), positive(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535),
                          positive(CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535)};
  properties_.max_block = {positive(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024), positive(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024),
                           positive(CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64)};
  properties_.max_threads_per_block = positive(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024);
  properties_.max_static_shared = limits_.portable_shared;
  properties_.max_dynamic_shared = limits_.most_shared;
  properties_.warp_size = positive(CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32);
  properties_.workers = limits_.multiprocessors;
  properties_.compute_capability = limits_.capability;
  properties_.memory_bytes = memory_.total_bytes();
  properties_.clusters = limits_.clusters;
  properties_.cooperative = limits_.cooperative;

  const auto records =
      mapped(kFaultRecords * sizeof(ir::FaultRecord), Phase::Open, "mapped memory for fault records on " + session_->name());
  if (!records.has_value()) return records.error();
  records_ = reinterpret_cast<ir::FaultRecord*>(records->host);
  records_address_ = records->address;
  std::fill_n(records_, kFaultRecords, ir::FaultRecord{});
  return {};
}

Result<Device::Mapped> CudaDevice::mapped(std::uint64_t bytes, Phase phase, const std::string& doing) {
  const Session::Current current(*session_);
  const DriverEntries& call = session_->call();
  void* host = nullptr;
  CUdeviceptr address = 0;
  CUresult r = call.cuMemHostAlloc(&host, bytes, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  if (r != CUDA_SUCCESS) return session_->failed(r, phase, doing);
  r = call.cuMemHostGetDevicePointer(&address, host, 0);
  if (r != CUDA_SUCCESS) {
    call.cuMemFreeHost(host);
    return session_->failed(r, phase, doing);
  }
  std::memset(host, 0, bytes);
  return Mapped{static_cast<std::byte*>(host), address, bytes};
}

Result<void> CudaDevice::make_mark(TimeMark& mark) {
  if (session_->poisoned()) return session_->lost(Phase::Wait);
  CUevent event = nullptr;
  const Session::Current current(*session_);
  const CUresult r = session_->call().cuEventCreate(&event, CU_EVENT_BLOCKING_SYNC);  // it times
  if (r != CUDA_SUCCESS) return session_->failed(r, Phase::Wait, "making an event");
  mark.handle = event;
  return {};
}

Result<std::int64_t> CudaDevice::nanoseconds(const TimeMark& from, const TimeMark& to) {
  if (session_->poisoned()) return session_->lost(Phase::Wait);
  float milliseconds = 0;
  const Session::Current current(*session_);
  const CUresult r = session_->call().cuEventElapsedTime(&milliseconds, static_cast<CUevent>(from.handle), static_cast<CUevent>(to.handle));
  if (r != CUDA_SUCCESS) return session_->failed(r, Phase::Wait, "timing");
  return static_cast<std::int64_t>(static_cast<double>(milliseconds) * 1e6);
}

Result<Device::Mapped> CudaDevice::map(std::uint64_t bytes) {
  if (session_->poisoned()) return session_->lost(Phase::Allocate);
  return mapped(bytes, Phase::Allocate, "mapped memory of " + std::to_string(bytes) + " bytes");
}

Result<std::unique_ptr<DeviceProgram>> CudaDevice::load(const CompiledCode& code, const ProgramFacts& facts) {
  const auto named = [&](const Error& error) {
    Error::Data data = error.data();
    data.kernel = facts.kernel;
    return Error(std::move(data));
  };
  auto module = Module::load(*session_, limits_, code.code, "kernel '" + facts.kernel + "'");
  if (!module.has_value()) return named(module.error());
  std::vector<std::uint32_t> offsets;
  for (const ir::ParamField& field : facts.layout.fields) offsets.push_back(field.offset);
  auto program = Program::make(*session_, limits_, std::move(*module), code.symbol, facts.kernel, std::move(offsets));
  if (!program.has_value()) return named(program.error());
  return std::unique_ptr<DeviceProgram>(std::move(*program));
}

// --- of other programs -----------------------------------------------------------------------------------------------------

class ForeignModule final : public DeviceModule {
 public:
  ForeignModule(std::shared_ptr<const Module> module, std::string image, std::string what)
      : module_(std::move(module)), image_(std::move(image)), what_(std::move(what)) {}
  const std::shared_ptr<const Module>& module() const { return module_; }
  const std::string& image() const { return image_; }
  const std::string& what() const { return what_; }

 private:
  std::shared_ptr<const Module> module_;
  std::string image_, what_;
};

Result<std::shared_ptr<DeviceModule>> CudaDevice::load_module(const std::string& image, const std::string& what) {
  auto module = Module::load(*session_, limits_, image, what);
  if (!module.has_value()) return module.error();
  return std::shared_ptr<DeviceModule>(
      std::make_shared<ForeignModule>(std::shared_ptr<const Module>(std::move(*module)), is_cubin(image) ? std::string() : image, what));
}

Result<ModuleEntry> CudaDevice::entry(const std::shared_ptr<DeviceModule>& module, const std::string& name) {
  const auto& foreign = static_cast<const ForeignModule&>(*module);
  auto function = foreign.module()->function(name, foreign.what());
  if (!function.has_value()) return function.error();
  auto params = parameters(*session_, *function, foreign.image(), name);
  if (!params.has_value()) return params.error();
  ModuleEntry entry;
  std::vector<std::uint32_t> offsets;
  for (const ParamPlace& p : *params) {
    entry.params.push_back({p.offset, p.size});
    entry.bytes = std::max(entry.bytes, p.offset + p.size);
    offsets.push_back(p.offset);
  }
  auto program = Program::make(*session_, limits_, foreign.module(), name, name, std::move(offsets));
  if (!program.has_value()) return program.error();
  entry.program = std::move(*program);
  return entry;
}

Result<std::uint32_t> CudaDevice::adopt_stream(void* stream) {
  const auto handle = static_cast<CUstream>(stream);
  const auto refused = [&](const char* rule, std::string message) {
    return make_error(ErrorCode::ForeignHandle, rule, std::move(message));
  };
  if (session_->poisoned()) return session_->lost(Phase::Transfer);
  if (handle != nullptr) {
    CUcontext context = nullptr;
    const Session::Current current(*session_);
    if (const CUresult r = session_->call().cuStreamGetCtx(handle, &context); r != CUDA_SUCCESS)
      return session_->failed(r, Phase::Transfer, "adopting a stream");
    if (context != session_->context()) {
      return refused("ContextMismatch", "the stream does not belong to the primary context of " + session_->label() +
                                            "; create it there (the CUDA runtime's streams do)");
    }
  }
  if (const auto queue = queues_.adopt(handle)) return *queue;
  return refused("TooManyAdoptedStreams",
                 "no more than " + std::to_string(kAdoptedQueues) + " streams can be adopted at a time; release one of them");
}

Result<void> CudaDevice::check_foreign(std::uint64_t pointer, std::uint64_t bytes) {
  if (session_->poisoned()) return session_->lost(Phase::Allocate);
  const DriverEntries& call = session_->call();
  const Session::Current current(*session_);
  CUmemorytype type = CU_MEMORYTYPE_HOST;
  int ordinal = -1;
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  CUresult r = call.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer);
  if (r == CUDA_SUCCESS) r = call.cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer);
  if (r == CUDA_SUCCESS) r = call.cuPointerGetAttribute(&begin, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer);
  if (r == CUDA_SUCCESS) r = call.cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer);
  const bool unknown = r == CUDA_ERROR_INVALID_VALUE;  // no address that the driver gave out
  if (r != CUDA_SUCCESS && !unknown) return session_->failed(r, Phase::Allocate, "adopting memory");
  if (unknown || type != CU_MEMORYTYPE_DEVICE || ordinal != session_->device()) {
    return make_error(ErrorCode::ForeignHandle, "ForeignHandle",
                      "the memory to adopt is not device memory of " + session_->label() +
                          (unknown ? ": the driver does not know the address" : "") + "; adopt what was allocated there and is not freed");
  }
  if (pointer < begin || bytes > size || pointer - begin > size - bytes) {
    return make_error(
        ErrorCode::Validation, "BindingRange",
        "the memory to adopt has " + std::to_string(begin + size - pointer) + " bytes from that address on, not " + std::to_string(bytes),
        {.requested = bytes, .limit = begin + size - pointer});
  }
  memory_.open_tasks(pointer, bytes).for_each([&](Event e) { queues_.wait(e); });
  return {};
}

// --- tasks -----------------------------------------------------------------------------------------------------------------

// What is staged belongs to the driver's copy as soon as its place is known, whenever that is given to the driver.
Result<Event> CudaDevice::submit(Task& base, std::uint32_t queue, const After& after) {
  auto& task = static_cast<CudaTask&>(base);
  switch (task.kind) {
    case Task::Kind::Launch: {
      const auto& program = static_cast<const Program&>(*task.program);
      if (task.fields_of != program.number() || task.fields_in != task.params) {
        const std::vector<std::uint32_t>& offsets = program.offsets();
        task.fields_of = 0;
        if (task.fields.size() < offsets.size()) task.fields.resize(offsets.size());
        void** field = task.fields.data();
        for (const std::uint32_t offset : offsets) *field++ = task.params + offset;
        task.fields_of = program.number();
        task.fields_in = task.params;
      }
      return queues_.enqueue(task, queue, after);
    }
    case Task::Kind::Upload: {
      Staging staging = std::move(task.staging);
      if (!staging) return queues_.enqueue(task, queue, after);
      task.from = staging.data();
      Result<Event> event = queues_.enqueue(task, queue, after);
      if (event.has_value()) staging_.give_back_after(std::move(staging), *event);
      return event;
    }
    case Task::Kind::Download: {
      if (!task.staging) return queues_.enqueue(task, queue, after);
      task.keep = true;
      task.to = task.staging.data();
      Result<Event> event = queues_.enqueue(task, queue, after);
      if (!event.has_value()) queues_.give_back(task);
      return event;
    }
    case Task::Kind::Copy:
    case Task::Kind::Zero:
    case Task::Kind::Graph:
    case Task::Kind::Marker:
    case Task::Kind::Call: return queues_.enqueue(task, queue, after);
    case Task::Kind::Host: break;  // not on a device that the host does not reach
  }
  queues_.give_back(task);
  return Error(ErrorCode::UnsupportedIo, "the host does not reach this device's memory");
}

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(const Driver& driver, int ordinal, const CudaOptions& options) {
  if (!driver.ok()) {
    return make_error(ErrorCode::NotFound, driver.state == DriverState::NoLibrary ? "NoDriver" : name(driver.state), driver.sentence);
  }
  if (ordinal < 0 || ordinal >= driver.devices) {
    return make_error(ErrorCode::NotFound, "NoSuchDevice",
                      "there is no device cuda:" + std::to_string(ordinal) + "; the CUDA driver has " + std::to_string(driver.devices) +
                          (driver.devices == 1 ? " device, cuda:0" : " devices, cuda:0 to cuda:" + std::to_string(driver.devices - 1)));
  }
  return or_no_memory([&]() -> Result<std::unique_ptr<Device>> {
    auto session = Session::open(driver, ordinal);
    if (!session.has_value()) return session.error();
    auto device = std::make_unique<CudaDevice>(std::move(*session), options);
    if (auto ok = device->start(); !ok.has_value()) return ok.error();
    return std::unique_ptr<Device>(std::move(device));
  });
}

}  // namespace kiln::rt
