// What a device supplies to the server: storage, programs, and queues of tasks with events. Claims, logs, validation and caching are not
// its business.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "kiln/ir/param_layout.h"
#include "kiln/runtime/client.h"
#include "kiln/runtime/compiler.h"
#include "kiln/runtime/memory.h"
#include "src/call_order.h"
#include "src/events.h"

namespace kiln::rt {

struct PoolSlice;

// Device memory. Made with the allocation and handed back with it, so that handing back needs no memory.
struct Storage {
  void* data = nullptr;  // the device's address; only a device that is host_addressable() has host memory there. Read it by address()
  std::uint64_t bytes = 0;
  std::uint64_t capacity = 0;         // the device's: what it took for it
  std::shared_ptr<const void> owner;  // of memory that somebody else allocated: kept until the last task is over
  Storage* next = nullptr;            // the device's, once handed back
  After after;                        // what has to be over before others use it; from the memory manager, before its first use
  // The memory manager's (src/memory):
  PoolSlice* slice = nullptr;                    // null: somebody else allocated it
  std::atomic<bool> unmapped{false};             // there is no memory yet: MemoryManager::map()
  std::atomic<Allocation*> allocation{nullptr};  // whose it is, once that is made
  bool fixed = false;                            // it may not be moved
};

// What the memory manager has to know of a device's memory.
struct MemoryTraits {
  std::uint64_t alignment = 64;  // of every allocation
  std::uint64_t bytes = 0;       // of the device; 0: not known
  MemoryPools pools = MemoryPools::exclusive_pages();
  std::uint64_t keep = std::uint64_t{256} << 20;  // bytes of empty pages to keep
  bool reuse_first = false;                       // taking memory from the device is dear: rather give out what others are at work on
};

// Host memory that a transfer goes through, in the form that the device's copies want. Whoever drops it gives it back.
class Staging {
 public:
  using Release = void (*)(void* owner, std::byte* data) noexcept;
  Staging() = default;
  Staging(std::byte* data, void* owner, Release release) : data_(data), owner_(owner), release_(release) {}
  Staging(Staging&& o) noexcept : data_(std::exchange(o.data_, nullptr)), owner_(o.owner_), release_(o.release_) {}
  Staging& operator=(Staging&& o) noexcept {
    std::swap(data_, o.data_);
    std::swap(owner_, o.owner_);
    std::swap(release_, o.release_);
    return *this;
  }
  ~Staging() {
    if (data_ != nullptr) release_(owner_, data_);
  }
  std::byte* data() const { return data_; }
  std::byte* let_go() { return std::exchange(data_, nullptr); }  // for the device
  explicit operator bool() const { return data_ != nullptr; }

 private:
  std::byte* data_ = nullptr;
  void* owner_ = nullptr;
  Release release_ = nullptr;
};

struct TimeMark;  // profile/time_marks.h

// Compiled code that is ready to run on the device.
class DeviceProgram {
 public:
  virtual ~DeviceProgram() = default;
};
// A module that Kiln did not compile, and one of its entries with the parameters that it takes.
class DeviceModule {
 public:
  virtual ~DeviceModule() = default;
};
struct ModuleEntry {
  struct Param {
    std::uint32_t offset = 0, size = 0;
  };
  std::unique_ptr<DeviceProgram> program;
  std::vector<Param> params;
  std::uint32_t bytes = 0;  // of the parameter block
};
// What the device needs to know of a kernel besides its code.
struct ProgramFacts {
  const std::string& kernel;
  const ir::ParamLayout& layout;
};

// Several operations that are submitted as one.
class DeviceGraph {
 public:
  virtual ~DeviceGraph() = default;
};

// A fault record's kind that only the host writes: the device had no scratch memory for the launch; `index` holds the bytes asked for.
inline constexpr std::uint32_t kFaultNoScratch = 0x100;

// One piece of work. Taken from the device, filled, and submitted or given back. Reused, so that filling one allocates nothing.
class Task {
 public:
  enum class Kind : std::uint8_t {
    Launch,    // program over grid, params, fault
    Copy,      // `bytes` from `from` to `to`
    Zero,      // `bytes` at `to`
    Upload,    // like Copy, from `staging`, which the task owns; without one from `from`, memory of map() that outlives the task
    Download,  // like Copy, to `staging`; begin_host waits until the bytes are there, finish_host gives the task back. Without staging to
               // `to`, memory of map() that outlives the task, and the task goes back by itself
    Host,      // the host thread does the work itself, between begin_host and finish_host; of host_addressable() devices only
    Graph,     // `graph`, one operation of it after the other
    Marker,    // nothing but a place in the order
    Call,      // like Host, on every device: what comes behind it starts after finish_host
  } kind = Kind::Host;
  const DeviceProgram* program = nullptr;
  const DeviceGraph* graph = nullptr;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  bool cooperative = false;
  // Of a launch on a device that reads_grids(): three u32 that take the place of `grid` when its turn comes; see dynamic_grid.h.
  const void* dynamic_grid = nullptr;
  std::array<std::uint32_t, 3> grid_limit{};
  std::byte* params = nullptr;
  std::uint64_t order = 0;           // of a launch or graph: larger than those of all that were enqueued before it
  ir::FaultRecord* fault = nullptr;  // never null for a launch: the device reports its own trouble there
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;  // of a row
  // Of a Copy, an Upload, a Download: rows that lie so many bytes apart on either side, each pitch at least `bytes`. A task comes with 1.
  std::uint64_t rows = 1, to_pitch = 0, from_pitch = 0;
  Staging staging;
  // Where set, the device notes there when the task begins and when it is over.
  TimeMark *begin = nullptr, *end = nullptr;
  // What it is called where somebody watches. Alive until it is submitted.
  struct Label {
    const std::string *name = nullptr, *place = nullptr;
    std::uint64_t stream = 0;
    bool known = false;            // the stream is
    std::uint64_t operations = 0;  // of a graph
  } label;

  // Zeroed room for the parameter block. Allocates only above kInline bytes, and then once.
  std::byte* reserve_params(std::size_t size);

 private:
  static constexpr std::size_t kInline = 1024;
  alignas(64) std::array<std::byte, kInline> inline_;
  std::vector<std::byte> heap_;
};

// One operation of a graph, in the words of Task: a Launch, a Copy, a Zero, or an Upload from mapped memory at `from`. The parameters are
// the device's to copy; everything else that it points to outlives the graph.
struct GraphNode {
  Task::Kind kind = Task::Kind::Launch;
  const DeviceProgram* program = nullptr;
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  bool cooperative = false;
  const std::byte* params = nullptr;
  std::size_t param_bytes = 0;
  ir::FaultRecord* fault = nullptr;
  void* to = nullptr;
  const void* from = nullptr;
  std::uint64_t bytes = 0;
  std::uint64_t rows = 1, to_pitch = 0, from_pitch = 0;  // more than one row: of no graph yet
};

// What every operation on a device that is lost says: the first failure, with a code for what was asked.
Error lost_device(ErrorCode code, const std::string& label, Error first);

// Watches the tasks that are submitted: profiling. Thread-safe; called under the lock of enqueueing, must not block.
class TaskWatcher {
 public:
  virtual ~TaskWatcher() = default;
  // May set the task's marks. What it returns comes back with the outcome.
  virtual std::uint64_t submitting(Task& task, std::uint32_t queue) noexcept = 0;
  virtual void submitted(std::uint64_t note, const Result<Event>& outcome) noexcept = 0;
};

// Thread-safe. Nothing here blocks unless it says so.
class Device {
 public:
  virtual ~Device() = default;  // waits for what was submitted

  // Null: nobody watches. The watcher outlives the tasks.
  TaskWatcher* watcher() const { return watcher_.load(std::memory_order_relaxed); }
  void watch(TaskWatcher* watcher) { watcher_.store(watcher, std::memory_order_release); }
  // Points in time for tasks to note. `from` and `to` are of tasks that are over.
  virtual Result<void> make_mark(TimeMark&) { return {}; }
  virtual void drop_mark(TimeMark&) noexcept {}
  virtual Result<std::int64_t> nanoseconds(const TimeMark& from, const TimeMark& to);
  virtual const DeviceProperties& properties() const = 0;
  // For errors that are about which device it is: "AMD EPYC (cpu)", "NVIDIA H200 (cuda:1)".
  virtual std::string label() const { return properties().name + " (" + properties().kind + ")"; }

  // Its number among those of its kind, as others who share memory with it count them.
  virtual int ordinal() const { return 0; }

  virtual MemoryTraits memory_traits() const { return {}; }
  // Memory of the device's own, for the memory manager; contents undefined, aligned as the traits say. May block. Errors: OutOfMemory.
  // bytes > 0.
  virtual Result<std::unique_ptr<Storage>> allocate(std::uint64_t bytes) = 0;
  // Gives it back once the events are over, or lets its owner know. May block, but not for the events.
  virtual void retire(std::unique_ptr<Storage> storage, const After& after) noexcept = 0;
  // Bytes that may still be allocated; none where nobody knows.
  virtual std::optional<std::uint64_t> free_memory() const { return std::nullopt; }

  // Whether the host reaches storage by itself, so that a thread can copy (Kind::Host); else all goes through Upload and Download.
  virtual bool host_addressable() const = 0;
  // Memory for one transfer of up to max_staging() bytes. May wait for transfers that are under way: call it without a lock. Errors:
  // OutOfMemory.
  virtual Result<Staging> stage(std::uint64_t bytes) = 0;
  virtual std::uint64_t max_staging() const = 0;
  // What the rows of an optimised layout are aligned to.
  virtual std::uint64_t row_alignment() const { return 64; }

  // What to compile for a launch with this block.
  virtual CompileOptions compile_options(const ir::Kernel& kernel, const Dim3& block, bool aligned16) const = 0;
  virtual Result<std::unique_ptr<DeviceProgram>> load(const CompiledCode& code, const ProgramFacts& facts) = 0;
  // The checks of a launch that only the loaded program makes possible; makes it ready for this much dynamic shared memory.
  virtual std::optional<Error> prepare(const DeviceProgram&, const LaunchConfig&) { return std::nullopt; }

  // Whether the loaded program says how large blocks should be; and that: threads along x of which most are resident, whole warps, at most
  // `most`.
  virtual bool has_occupancy() const { return false; }
  virtual Result<std::uint32_t> best_block(const DeviceProgram&, std::uint32_t dynamic_shared, std::uint32_t most);

  // Whether a task reads its grid from device memory when its turn comes (Task::dynamic_grid); else the host does.
  virtual bool reads_grids() const { return false; }

  // Things of other programs, on devices that have such: modules, streams and memory. `what` names the module in errors.
  virtual Result<std::shared_ptr<DeviceModule>> load_module(const std::string& image, const std::string& what);
  virtual Result<ModuleEntry> entry(const std::shared_ptr<DeviceModule>& module, const std::string& name);
  virtual Result<std::uint32_t> adopt_stream(void* stream);  // gives its queue
  virtual Result<void> release_stream(std::uint32_t queue);  // waits
  // Memory of this device, all of it.
  virtual Result<void> check_foreign(std::uint64_t address, std::uint64_t bytes);

  // Memory that kernels write and the host reads once they are over, zeroed, aligned to 64. Errors: OutOfMemory.
  struct Mapped {
    std::byte* host = nullptr;
    std::uint64_t address = 0;  // for kernels
    std::uint64_t bytes = 0;
  };
  virtual Result<Mapped> map(std::uint64_t bytes) = 0;
  virtual void unmap(const Mapped& memory) noexcept = 0;  // nothing uses it any more

  // Makes one of operations that each come after the one before. At least one. `name` outlives the
  // device, the graph its last run. Waits for nothing, but may take long: call it without a lock.
  virtual Result<std::unique_ptr<DeviceGraph>> make_graph(std::span<const GraphNode> nodes, const std::string& name) = 0;

  // Memory that kernels write fault records to and the host reads, and the address of its first record for kernels.
  virtual std::span<ir::FaultRecord> fault_records() = 0;
  virtual std::uint64_t fault_address() = 0;

  // A free task. Waits while as many are outstanding as the device holds; call it without a lock. `beyond`: it does not, since they may all
  // wait for the caller.
  virtual Task& acquire(bool beyond) = 0;
  virtual void abandon(Task& task) noexcept = 0;
  // Hands the task to a queue; it starts when its queue gets to it and the events are over. On error it was given back. One thread at a
  // time for a queue, and alone where there are events of others that are not known to be over.
  virtual Result<Event> submit(Task& task, std::uint32_t queue, const After& after) = 0;
  // Sees to it that work of the queue which can start has been given to whoever runs it. Does not wait.
  virtual void flush(std::uint32_t) {}
  // Whether a task submitted now would have to wait.
  virtual bool busy(std::uint32_t queue, const After& after) const = 0;

  // For Kind::Host, Kind::Call and Kind::Download: waits for its turn; then the thread works; then the task is over and given back.
  virtual void begin_host(Task& task) = 0;
  virtual void finish_host(Task& task) noexcept = 0;

  virtual bool done(Event event) const = 0;
  // Known to be over without asking anybody: may miss what is.
  virtual bool over(Event event) const { return done(event); }
  virtual void wait(Event event) = 0;  // waits
  virtual Event last(std::uint32_t queue) const = 0;
  // The first failure, once nothing on the device can be retried. From then on allocate, load and submit fail with it, nothing waits, and
  // every event is done.
  virtual std::optional<Error> poisoned() const { return std::nullopt; }
  // A kernel trapped. A device that this does not poison by itself is poisoned now.
  virtual void trapped(const Error& trap) = 0;
  // Asked when the device is poisoned, under its locks: the trap that did it, if one did. Set before the device is used.
  virtual void ask_for_trap(std::function<std::optional<Error>()> trap) = 0;
  // Whether a task was not known to be over when the device was poisoned: it may have run, in part or not at all.
  virtual bool lost(Event) const { return false; }
  // What the device answered where it took the task, but refused it once its turn had come.
  virtual std::optional<Error> refused(Event) { return std::nullopt; }
  virtual bool any_refused() const { return false; }  // whether there is such an answer. One load; known before the task counts as over

 private:
  std::atomic<TaskWatcher*> watcher_{nullptr};
};

// A task taken from the device, given back unless it was handed over. The one way to submit one.
class HeldTask {
 public:
  explicit HeldTask(Device& device) : device_(device), task_(&device.acquire(CallOrder::in_call_of(device))) {
    task_->rows = 1;
    task_->to = nullptr;
    task_->from = nullptr;
    task_->begin = task_->end = nullptr;
    task_->order = 0;
    task_->label = {};
  }
  ~HeldTask() {
    if (task_ != nullptr) device_.abandon(*task_);
  }
  HeldTask(const HeldTask&) = delete;
  HeldTask& operator=(const HeldTask&) = delete;

  Task* operator->() { return task_; }
  Task& operator*() { return *task_; }
  // Under the lock of enqueueing.
  Result<Event> submit(std::uint32_t queue, const After& after) {
    TaskWatcher* const watcher = device_.watcher();
    Result<Event> event =
        watcher != nullptr ? watched(*watcher, queue, after) : device_.submit(*std::exchange(task_, nullptr), queue, after);
    if (event.has_value()) CallOrder::submitted(device_, *event, after);
    return event;
  }

 private:
  Result<Event> watched(TaskWatcher& watcher, std::uint32_t queue, const After& after);

  Device& device_;
  Task* task_;
};

}  // namespace kiln::rt
