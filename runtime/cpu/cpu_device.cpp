#include "cpu/cpu_device.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>
#include <thread>

#include "cpu/cpu_info.h"
#include "cpu/scheduler.h"
#include "cpu/storage.h"
#include "src/dynamic_grid.h"
#include "src/object_loader.h"

namespace kiln::rt {
namespace {

constexpr std::uint64_t kCopyPiece = std::uint64_t{1} << 20;  // bytes a thread copies at a time
constexpr std::uint64_t kWarp = 32;
constexpr std::size_t kFaultRecords = 2048;
constexpr std::uint64_t kMaxStaging = std::uint64_t{256} << 20;  // larger writes wait for their turn instead of being copied twice

std::uint64_t round_up(std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; }

class CpuProgram final : public DeviceProgram {
 public:
  CpuProgram(std::shared_ptr<const LoadedObject> object, const CompiledCode& code)
      : object_(std::move(object)),
        entry_(reinterpret_cast<HostEntry>(reinterpret_cast<std::uintptr_t>(object_->entry()))),
        static_bytes_(round_up(code.static_shared_bytes, 16)),
        context_bytes_(code.context_bytes),
        context_bytes_per_warp_(code.context_bytes_per_warp) {}
  HostEntry entry() const { return entry_; }
  std::uint64_t scratch_bytes(const std::array<std::uint32_t, 3>& block, std::uint32_t dynamic_shared) const {
    const std::uint64_t warps = (std::uint64_t{block[0]} * block[1] * block[2] + kWarp - 1) / kWarp;
    return static_bytes_ + round_up(dynamic_shared, 64) + context_bytes_ + warps * context_bytes_per_warp_;
  }

 private:
  std::shared_ptr<const LoadedObject> object_;
  HostEntry entry_;
  std::uint64_t static_bytes_, context_bytes_, context_bytes_per_warp_;
};

// How many rows of an operation a thread copies at a time.
template <class Operation>
std::uint64_t rows_of_piece(const Operation& op) {
  return std::max<std::uint64_t>(1, kCopyPiece / std::max<std::uint64_t>(1, op.bytes));
}
// Pieces of work that may run at once.
template <class Operation>
std::uint64_t blocks_of(const Operation& op) {
  if (op.kind == Task::Kind::Launch) return std::uint64_t{op.grid[0]} * op.grid[1] * op.grid[2];  // validated: fits
  if (op.kind == Task::Kind::Marker) return 1;
  const std::uint64_t piece = op.rows > 1 ? rows_of_piece(op) : kCopyPiece;
  return ((op.rows > 1 ? op.rows : op.bytes) + piece - 1) / piece;
}

// As a kernel reports: the first one wins.
void report_no_scratch(ir::FaultRecord& record, std::uint64_t bytes) {
  std::uint32_t expected = 0;
  std::atomic_ref state(record.state);
  if (!state.compare_exchange_strong(expected, 1)) return;
  record.kind = kFaultNoScratch;
  record.index = bytes;
  state.store(2, std::memory_order_release);
}

std::uint64_t nanoseconds() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

template <class Operation>
void copy_rows(const Operation& op, std::byte* to, const std::byte* from, std::uint64_t first, std::uint64_t last) {
  const std::uint64_t piece = rows_of_piece(op), end = std::min(last * piece, op.rows);
  for (std::uint64_t row = first * piece; row < end; ++row) std::memcpy(to + row * op.to_pitch, from + row * op.from_pitch, op.bytes);
}

// A list of operations, each a stage of the task that runs it.
class CpuGraph final : public DeviceGraph {
 public:
  explicit CpuGraph(std::span<const GraphNode> nodes) : nodes_(nodes.begin(), nodes.end()) {
    std::size_t bytes = 0;
    for (const GraphNode& node : nodes_) bytes += round_up(node.param_bytes, 64);
    params_.resize(bytes + 63);
    auto* at = reinterpret_cast<std::byte*>(round_up(reinterpret_cast<std::uintptr_t>(params_.data()), 64));
    for (GraphNode& node : nodes_) {
      blocks_.push_back(blocks_of(node));
      if (node.params == nullptr) continue;
      std::memcpy(at, node.params, node.param_bytes);
      node.params = at;
      at += round_up(node.param_bytes, 64);
    }
  }
  const GraphNode& node(std::size_t stage) const { return nodes_[stage]; }
  std::span<const std::uint64_t> blocks() const { return blocks_; }

 private:
  std::vector<GraphNode> nodes_;
  std::vector<std::byte> params_;
  std::vector<std::uint64_t> blocks_;
};

const void* source_of(const Task& task) { return task.kind == Task::Kind::Upload && task.staging ? task.staging.data() : task.from; }
const void* source_of(const GraphNode& node) { return node.from; }

// Of a task, or of an operation of a graph.
template <class Operation>
void run_operation(const Operation& op, std::uint64_t first, std::uint64_t last, Scratch& scratch) {
  auto* const to = static_cast<std::byte*>(op.to);
  const auto* const source = static_cast<const std::byte*>(source_of(op));
  if (op.rows > 1 && op.kind != Task::Kind::Launch) return copy_rows(op, to, source, first, last);
  const std::uint64_t from = first * kCopyPiece, size = std::min(last * kCopyPiece, op.bytes) - from;
  switch (op.kind) {
    case Task::Kind::Launch: {
      const auto& program = static_cast<const CpuProgram&>(*op.program);
      const std::uint64_t bytes = program.scratch_bytes(op.block, op.dynamic_shared);
      void* memory = scratch.at_least(bytes);
      if (memory == nullptr) return report_no_scratch(*op.fault, bytes);
      const HostGrid grid{{op.grid[0], op.grid[1], op.grid[2]}, op.dynamic_shared, &nanoseconds, {op.block[0], op.block[1], op.block[2]}};
      program.entry()(op.params, &grid, first, last, memory);
      return;
    }
    case Task::Kind::Copy:
    case Task::Kind::Upload:
    case Task::Kind::Download: std::memcpy(to + from, source + from, size); return;
    case Task::Kind::Zero: std::memset(to + from, 0, size); return;
    case Task::Kind::Host:
    case Task::Kind::Graph:
    case Task::Kind::Call:
    case Task::Kind::Marker: return;
  }
}

void run_blocks(CpuTask& task, std::uint64_t first, std::uint64_t last, Scratch& scratch) {
  if (task.idle) return;
  if (task.kind == Task::Kind::Graph) run_operation(static_cast<const CpuGraph&>(*task.graph).node(task.stage), first, last, scratch);
  else run_operation(task, first, last, scratch);
}

// The launch's turn has come, and so its grid is there.
std::uint64_t count_blocks(CpuTask& task) {
  task.idle = !read_grid(task.dynamic_grid, task.grid_limit, task.grid, *task.fault);
  return task.idle ? 1 : blocks_of(task);
}

class CpuDevice final : public Device {
 public:
  CpuDevice(std::unique_ptr<Scheduler> scheduler, const CpuOptions& options)
      : device_(!options.name.empty() ? options.name
                : options.number == 0 ? std::string("cpu")
                                      : "cpu:" + std::to_string(options.number)),
        any_block_(options.any_block),
        scheduler_(std::move(scheduler)) {
    properties_.name = cpu_name();
    properties_.kind = "cpu";
    properties_.arch = options.arch.empty() ? cpu_level(read_cpuid()) : options.arch;
    properties_.workers = scheduler_->workers();
    properties_.memory_bytes = machine_bytes();
  }

  const DeviceProperties& properties() const override { return properties_; }
  std::string label() const override { return properties_.name + " (" + device_ + ")"; }
  // Small things share pages; what is large comes from the system and goes back there, beyond some that is kept, since memory that was
  // never touched costs a fault for each of its pages.
  MemoryTraits memory_traits() const override {
    MemoryTraits traits;
    traits.bytes = machine_bytes();
    traits.pools.pools = {{PoolKind::Sliced, std::uint64_t{1} << 20, std::uint64_t{1} << 17, 0, 5000},
                          {PoolKind::Exclusive, kAnySize, 0, 0, 5000}};
    traits.keep = std::min(traits.bytes / 16, std::uint64_t{256} << 20);
    return traits;
  }
  std::optional<std::uint64_t> free_memory() const override { return available_bytes(); }
  Result<std::unique_ptr<Storage>> allocate(std::uint64_t bytes) override {
    if (auto error = lost_as(ErrorCode::IoDevicePoisoned)) return std::move(*error);
    return make_storage(bytes);
  }
  void retire(std::unique_ptr<Storage> storage, const After& after) noexcept override {
    storage->after = after;
    scheduler_->retire(std::move(storage));
  }

  bool reads_grids() const override { return true; }
  bool host_addressable() const override { return true; }
  Result<Staging> stage(std::uint64_t bytes) override {
    auto* data = static_cast<std::byte*>(std::malloc(bytes));
    if (data == nullptr) return Error(ErrorCode::OutOfMemory, "no memory for a transfer of " + std::to_string(bytes) + " bytes");
    return Staging(data, nullptr, [](void*, std::byte* given) noexcept { std::free(given); });
  }
  std::uint64_t max_staging() const override { return kMaxStaging; }

  CompileOptions compile_options(const ir::Kernel& kernel, const Dim3& block, bool aligned16) const override {
    CompileOptions options;
    options.target = TargetKind::Host;
    options.arch = properties_.arch;
    options.block = {block.x, block.y, block.z};
    if (any_block_ && !kernel.has_block_size()) {
      const std::uint32_t other = block.y == 1 && block.z == 1 ? 1 : 0;  // a row of threads, or any shape
      options.block = {0, other, other};
    }
    options.aligned16 = aligned16;
    return options;
  }
  Result<std::unique_ptr<DeviceProgram>> load(const CompiledCode& code, const ProgramFacts& facts) override {
    if (auto error = lost_as(ErrorCode::CompileDevicePoisoned)) return std::move(*error);
    auto object = LoadedObject::load(code.code, code.symbol);
    if (!object.has_value()) {
      Error::Data data = object.error().data();
      data.kernel = facts.kernel;
      return Error(std::move(data));
    }
    return std::unique_ptr<DeviceProgram>(std::make_unique<CpuProgram>(std::move(*object), code));
  }
  Result<void> check_foreign(std::uint64_t, std::uint64_t) override {  // the host's memory is the device's
    if (auto error = lost_as(ErrorCode::IoDevicePoisoned)) return std::move(*error);
    return {};
  }
  Result<std::unique_ptr<DeviceGraph>> make_graph(std::span<const GraphNode> nodes, const std::string&) override {
    if (auto error = lost_as(ErrorCode::LaunchDevicePoisoned)) return std::move(*error);
    return std::unique_ptr<DeviceGraph>(std::make_unique<CpuGraph>(nodes));
  }
  // Pages that the system clears when they are touched: a log is as large as it may get, and seldom full.
  Result<Mapped> map(std::uint64_t bytes) override {
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return Error(ErrorCode::OutOfMemory, "the host has no " + std::to_string(bytes) + " bytes more");
    return Mapped{static_cast<std::byte*>(memory), reinterpret_cast<std::uint64_t>(memory), bytes};
  }
  void unmap(const Mapped& memory) noexcept override { munmap(memory.host, memory.bytes); }
  std::span<ir::FaultRecord> fault_records() override { return {records_->slots, kFaultRecords}; }
  std::uint64_t fault_address() override { return reinterpret_cast<std::uint64_t>(records_->slots); }

  Task& acquire(bool beyond) override { return scheduler_->acquire(beyond); }
  void abandon(Task& task) noexcept override { scheduler_->abandon(static_cast<CpuTask&>(task)); }
  Result<Event> submit(Task& task, std::uint32_t queue, const After& after) override {
    const bool launches = task.kind == Task::Kind::Launch || task.kind == Task::Kind::Graph;
    if (auto error = lost_as(launches ? ErrorCode::LaunchDevicePoisoned : ErrorCode::IoDevicePoisoned)) {
      abandon(task);
      return std::move(*error);
    }
    if (task.kind == Task::Kind::Graph) {
      const std::span<const std::uint64_t> stages = static_cast<const CpuGraph&>(*task.graph).blocks();
      return scheduler_->submit(static_cast<CpuTask&>(task), queue, after, stages.front(), stages.subspan(1));
    }
    const bool of_host = task.kind == Task::Kind::Host || task.kind == Task::Kind::Call;
    const std::uint64_t blocks = of_host ? 0 : task.kind == Task::Kind::Marker ? 1 : blocks_of(task);
    return scheduler_->submit(static_cast<CpuTask&>(task), queue, after, blocks);
  }
  bool busy(std::uint32_t queue, const After& after) const override { return scheduler_->busy(queue, after); }
  void begin_host(Task& task) override { scheduler_->begin_host(static_cast<CpuTask&>(task)); }
  void finish_host(Task& task) noexcept override { scheduler_->finish_host(static_cast<CpuTask&>(task)); }
  bool done(Event event) const override { return scheduler_->done(event); }
  void wait(Event event) override { scheduler_->wait(event); }
  Event last(std::uint32_t queue) const override { return scheduler_->last(queue); }
  // As a GPU after a trap: nothing can be done any more. What was submitted before runs to its end.
  void trapped(const Error& trap) override {
    const std::lock_guard lock(trap_mutex_);
    if (!trap_) trap_ = trap;
    lost_.store(true, std::memory_order_release);
  }
  void ask_for_trap(std::function<std::optional<Error>()>) override {}  // it is told
  std::optional<Error> poisoned() const override {
    if (!lost_.load(std::memory_order_acquire)) return std::nullopt;
    const std::lock_guard lock(trap_mutex_);
    return trap_;
  }

 private:
  std::optional<Error> lost_as(ErrorCode code) const {
    auto trap = poisoned();
    if (!trap) return std::nullopt;
    return lost_device(code, label(), std::move(*trap));
  }
  const std::string device_;  // its name
  const bool any_block_;
  std::atomic<bool> lost_{false};
  mutable std::mutex trap_mutex_;
  std::optional<Error> trap_;  // guarded
  struct alignas(64) Records {
    ir::FaultRecord slots[kFaultRecords];
  };
  DeviceProperties properties_;
  std::unique_ptr<Records> records_ = std::make_unique<Records>();
  std::unique_ptr<Scheduler> scheduler_;  // last: it ends its threads before anything goes
};

}  // namespace

Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options) {
  const unsigned workers = options.workers != 0 ? options.workers : std::max(1u, std::thread::hardware_concurrency());
  auto scheduler = Scheduler::start(workers, &run_blocks, &count_blocks);
  if (!scheduler.has_value()) return scheduler.error();
  return std::unique_ptr<Device>(std::make_unique<CpuDevice>(std::move(*scheduler), options));
}

}  // namespace kiln::rt
