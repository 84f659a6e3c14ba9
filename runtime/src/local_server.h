// The server over a device of this process: validation, programs, claims, the order of work on memory, late faults.
#pragma once
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "kiln/runtime/modes.h"
#include "src/allocation.h"
#include "src/capture/captures.h"
#include "src/device.h"
#include "src/enqueue_lock.h"
#include "src/failure/failure_store.h"
#include "src/failure/io_sets.h"
#include "src/failure/launch_log.h"
#include "src/failure/scope.h"
#include "src/fault_slots.h"
#include "src/launch_logs.h"
#include "src/launch_uses.h"
#include "src/memory/memory_manager.h"
#include "src/prepared_launch.h"
#include "src/process.h"
#include "src/profile/profiler.h"
#include "src/programs.h"
#include "src/server.h"

namespace kiln::rt {

struct Download;        // host_access.h
struct HostMemory;      // host_access.h
struct Plane;           // strided.h
struct StridedBinding;  // kiln/runtime/strided.h
class Background;

// Locks, outermost first: enqueue_ as a whole, then one of its lanes, then those of the store, the log, the instances of graphs, the logs
// of launches, memory and the device. None is held over a wait, a compilation or a copy.
class LocalServer final : public Server {
 public:
  LocalServer(std::unique_ptr<Device> device, Compiler* compiler);
  ~LocalServer() override;  // runs what was enqueued

  const DeviceProperties& properties() const override { return device_->properties(); }
  std::string label() const override { return device_->label(); }
  Result<Memory> allocate(std::uint64_t bytes) override;
  Result<void> write(std::uint64_t stream, const Binding& to, const void* from) override;
  Result<void> fill_zero(std::uint64_t stream, const Binding& to) override;
  Result<void> copy(std::uint64_t stream, const Binding& to, const Binding& from) override;
  Result<void> read(std::uint64_t stream, const Binding& from, void* to) override;
  Result<void> check(std::span<const Binding> ranges) override;
  Result<void> sync(std::span<const Binding> ranges) override;
  Result<void> launch(std::uint64_t stream, const LaunchRequest& request) override;
  Result<void> prepare(PreparedState& state, const Error* unfit) override;
  Result<void> launch_prepared(std::uint64_t stream, const PreparedState& state) override;
  Result<std::uint64_t> start_profile(std::uint64_t stream, bool at_launch) override;
  Result<std::chrono::nanoseconds> end_profile(std::uint64_t stream, std::uint64_t window) override;
  Result<void> abandon_profile(std::uint64_t window) override;
  Result<void> sync_stream(std::uint64_t stream) override;
  Result<void> sync_all() override;
  Result<void> flush(std::uint64_t stream) override;
  Result<void> call(std::uint64_t stream, HostCall function, const std::source_location& where) override;
  Point record(std::uint64_t stream) override;
  Result<void> wait_event(std::uint64_t stream, const Point& point) override;
  bool event_done(const Point& point) override;
  Result<void> sync_event(const Point& point) override;
  Result<void> when_over(const Point& point, std::move_only_function<void()> then) override;
  Result<void> read_later(std::uint64_t stream, const Binding& from, void* to, ReadDone done) override;
  Result<std::unique_ptr<Written>> written(std::span<const Binding> bytes) override;
  void on_log(LogSink sink) override {
    if (!forked()) logs_.set_sink(std::move(sink));
  }
  Result<void> compile_queued() override;
  void log_bytes(std::uint64_t bytes) override {
    if (!forked()) logs_.set_bytes(bytes);
  }
  void free(Allocation& allocation) noexcept override;

  // --- kiln/runtime/memory.h ------------------------------------------------------------------------------------------------
  Result<Memory> allocate_on(std::uint64_t stream, std::uint64_t bytes);
  Result<MemoryReport> memory_report();
  Result<MemoryReport> memory_report(std::uint64_t stream);
  Result<std::uint64_t> memory_cleanup();
  Result<void> install_memory_pools(const MemoryPools& layout);
  MemoryManager& memory() { return *memory_; }
  // Its address is known outside from now on: it is there, and stays where it is. Errors: as MemoryManager::map().
  Result<void> pin_address(const Binding& binding);
  // How often memory was moved: who keeps an address that it read without the lock of enqueueing compares, under that lock.
  std::uint64_t moves() const { return moves_.load(std::memory_order_relaxed); }

  void claim(const Binding& binding, const Error& why) noexcept override;
  Captures& captures() override { return captures_; }

  // --- what kiln/runtime/cuda.h needs -----------------------------------------------------------------------------------
  // A launch of a program that Kiln did not compile. `params` is the parameter block; what it does with memory is as declared.
  struct Use {
    Binding binding;
    ir::Access access = ir::Access::InOut;
  };
  struct LoadedLaunch {
    const DeviceProgram& program;
    const std::shared_ptr<const std::string>& name;
    const LaunchConfig& config;
    std::span<const std::byte> params;
    std::span<const Use> uses;
  };
  Result<Event> launch_loaded(std::uint64_t stream, const LoadedLaunch& launch);
  // As refused_launch, for such a program.
  Error refused_loaded(std::uint64_t stream, std::span<const Use> uses, Error error);
  Result<Memory> adopt(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner, bool read_only = false);
  Result<Device*> reachable_device();                           // the error of a forked process
  bool forked() const { return process_ != process_number(); }  // the device is another process's, its locks may be held for ever

  // --- strided transfers (strided_transfer.cpp), kiln/runtime/strided.h ---------------------------------------------------
  Result<void> read_strided(std::uint64_t stream, const StridedBinding& from, void* to);
  Result<void> write_strided(std::uint64_t stream, const StridedBinding& to, const void* from);
  Result<void> copy_strided(std::uint64_t stream, const StridedBinding& to, const StridedBinding& from);
  void claim_strided(const StridedBinding& to, const Error& why) noexcept;
  // --- host memory and views (host_access.cpp, host_transfer.cpp), kiln/runtime/staging.h ---------------------------------
  Result<std::shared_ptr<HostMemory>> pin(std::uint64_t bytes);
  Result<void> upload_from(std::uint64_t stream, const Binding& to, HostMemory& from, std::uint64_t first);
  Result<void> download_to(std::uint64_t stream, const Binding& from, HostMemory& to, std::uint64_t first);
  Result<void> upload_strided(std::uint64_t stream, const StridedBinding& to, HostMemory& from, std::uint64_t first);
  Result<void> download_strided(std::uint64_t stream, const StridedBinding& from, HostMemory& to, std::uint64_t first);
  bool over(const HostMemory& memory, bool reads_too);
  Result<void> settle(HostMemory& memory, bool reads_too);  // waits; what the downloads into it came to
  void unpin(HostMemory& memory) noexcept;
  Result<const std::byte*> open_view(std::uint64_t stream, const Binding& from);
  void close_view(Allocation& memory) noexcept;
  Profiler& profiler() { return profiler_; }

  // For tests.
  FailureStore& failures() { return store_; }
  Programs& programs() { return programs_; }
  FaultSlots& fault_slots() { return slots_; }
  std::size_t unconfirmed() {
    enqueue_.flush();
    return log_.size();
  }
  Device& device() { return *device_; }

 private:
  friend class Captures;  // a part of this, in files of its own
  Result<void> same_process() const;
  // What every operation goes through: in a forked child it is refused; what throws for want of host memory is an error, after
  // `claim_writes`; what it found to be logged is handed on at the end.
  struct EnqueuesNothing;
  template <class Operation, class Claim>
  auto enter(Operation&& operation, Claim&& claim_writes) -> decltype(operation());
  void note_failure(const Error& error) noexcept;
  // The same for work of a stream: what fails is none of a profile window's time.
  template <class Operation, class Claim>
  auto enter_on(std::uint64_t stream, Operation&& operation, Claim&& claim_writes) -> decltype(operation());
  // The operations, below that.
  Result<Memory> allocate_now(std::uint64_t stream, std::uint64_t bytes);
  Result<std::uint64_t> memory_cleanup_now();
  Result<Memory> adopt_now(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner, bool read_only);
  // `chosen`, where not null: grid and block as they were launched.
  Result<void> launch_now(std::uint64_t stream, const LaunchRequest& request, std::optional<LaunchConfig>* chosen);
  Result<void> prepare_now(PreparedState& state, const Error* unfit);
  Result<void> launch_prepared_now(std::uint64_t stream, const PreparedState& state);
  Result<void> write_now(std::uint64_t stream, const Binding& to, const void* from);
  Result<void> fill_zero_now(std::uint64_t stream, const Binding& to);
  Result<void> copy_now(std::uint64_t stream, const Binding& to, const Binding& from);
  Result<void> read_now(std::uint64_t stream, const Binding& from, void* to);
  Result<void> check_now(std::span<const Binding> ranges);
  Result<void> sync_now(std::span<const Binding> ranges);
  Result<std::uint64_t> start_profile_now(std::uint64_t stream, bool at_launch);
  Result<std::chrono::nanoseconds> end_profile_now(std::uint64_t stream, std::uint64_t window);
  Result<void> abandon_profile_now(std::uint64_t window);
  Result<Event> submit_mark(std::uint32_t queue, TimeMark*& mark);
  Result<void> sync_stream_now(std::uint64_t stream);
  Result<void> sync_all_now();
  Result<void> call_now(std::uint64_t stream, HostCall function, const std::source_location& where);
  Result<void> wait_event_now(std::uint64_t stream, const Point& point);
  Result<void> when_over_now(const Point& point, std::move_only_function<void()> then);
  Result<void> read_later_now(std::uint64_t stream, const Binding& from, void* to, ReadDone done);
  class LaterRead;
  Result<void> read_piece_later(std::uint64_t stream, const Binding& whole, const Binding& piece, std::byte* to,
                                std::shared_ptr<LaterRead> read);
  class LogWritten;
  Result<std::unique_ptr<Written>> written_now(std::span<const Binding> bytes);
  // Waits for the events, confirms, and says what the device's state is. Errors: a host call would wait for itself.
  Result<void> wait_for(const After& events);
  void settle_order();          // before a host call asks whether it may wait for events that were found without the enqueue lock
  Result<void> room_in_call();  // a host call does not enqueue without end
  Result<Event> launch_loaded_now(std::uint64_t stream, const LoadedLaunch& launch);

  Result<void> drop_launch(std::uint64_t stream, const LaunchPlan& plan, const LaunchRequest& request, LaunchMode mode);  // it does not run
  Result<void> map_late(Allocation& memory);
  Result<void> map_for(const Binding& to, const Binding& used);  // `to` was to be written, and is claimed where there is no memory
  Result<void> move_memory(Allocation& allocation, std::uint64_t stream);
  // --- what is checked before anything is touched (check_launch.cpp) ---
  struct Refusal {
    Error error;
    bool no_code = false;  // there is no program: what the kernel declares to write is claimed, not only what it was to write whole
  };
  // Finds the program and everything that can be refused. `checked.plan` is set in any event.
  std::optional<Refusal> check_launch(const LaunchRequest& request, CheckedLaunch& checked);
  Result<void> validate_arguments_of(const LaunchPlan& plan, const LaunchRequest& request) const;
  std::optional<Error> validate(const LaunchPlan& plan, const LaunchRequest& request, const LaunchConfig& config,
                                bool& nothing_to_do) const;
  std::optional<Refusal> find_program(const LaunchRequest& request, bool aligned16, CheckedLaunch& checked);
  // Without `ask` one whose program is the same as that of the best one, which the compiled program would have to tell.
  std::optional<Refusal> choose_block(const LaunchRequest& request, bool aligned16, CheckedLaunch& checked, bool ask = true);
  Result<void> launch_checked(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked);

  // --- grids that the device holds (dynamic_grid.cpp) ---
  std::optional<Error> check_grid_buffer(const LaunchPlan& plan, const Binding& grid) const;
  std::array<std::uint32_t, 3> grid_limit(const LaunchPlan& plan, const LaunchConfig& config) const;
  bool host_reads_grid(const LaunchRequest& request, const CheckedLaunch& checked);
  Result<void> launch_dynamic(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked);
  std::optional<Error> skipped_by_grid(const LaunchRequest& request, const CheckedLaunch& checked);

  Error refused_launch(const LaunchPlan& plan, const LaunchRequest& request, Error error);
  // A buffer of a launch that is refused; of this device or another.
  struct RefusedUse {
    const Memory* memory = nullptr;
    ByteRange range;
    bool whole = false;  // it was to be written whole
    const std::string* parameter = nullptr;
  };
  void refuse(std::span<const RefusedUse> uses, const Error& error);
  Error refused_transfer(const Binding& to, const Binding* from, Error error);
  Error failed_launch(const LaunchPlan& plan, const LaunchRequest& request, Error error);
  Result<void> enqueue(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked);
  static void describe_launch(Task& task, const DeviceProgram& program, const LaunchConfig& config);
  // Orders, submits and notes a launch, which does with memory what `uses` says, under `lock`, that of enqueueing, which ends here. Errors:
  // it was skipped or refused, which its bytes know.
  // `conditional`: whether it does anything shows when it runs (LogNote::conditional).
  Result<Event> submit_in_order(std::uint64_t stream, HeldTask& task, const LaunchFacts& facts, const std::string& name,
                                const LaunchUses& uses, HeldSlot* slot, bool conditional, bool in_lane, Stamp& stamp);
  void settle(EnqueueLock::Lane& lane);
  std::optional<Result<void>> enqueue_in_lane(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked);
  Result<Event> submit_launch(std::unique_lock<EnqueueLock> lock, std::uint64_t stream, HeldTask& task, const LaunchFacts& facts,
                              const std::shared_ptr<const std::string>& name, const LaunchUses& uses, HeldSlot* slot,
                              bool conditional = false);
  // `turn`: of work that the caller does itself, for whose turn it waits.
  Result<void> transfer(std::uint64_t stream, HeldTask& task, LogKind kind, const Binding& to, const Binding* from,
                        std::optional<CallOrder::Wait>* turn = nullptr);
  // Of just these bytes of the two memories; the task's to and from say where in them it begins (at_byte). `at`: the task's place.
  Result<void> transfer(std::uint64_t stream, HeldTask& task, LogKind kind, Allocation& to, std::span<const MemoryRange> writes,
                        Allocation* from, std::span<const MemoryRange> reads, Event* at = nullptr,
                        std::optional<CallOrder::Wait>* turn = nullptr);
  // Why nothing may write the memory now. Under the enqueue lock.
  std::optional<Error> write_blocked(const Allocation& memory) const;
  Result<void> check_strided(const StridedBinding& view, std::string_view what, std::uint64_t& elements) const;
  Result<void> check_strided_target(const StridedBinding& to, const Binding* from, std::string_view what, std::uint64_t& elements);
  Result<void> read_plane(std::uint64_t stream, Allocation& memory, const Plane& plane, std::byte* to);
  Result<void> write_plane(std::uint64_t stream, Allocation& memory, const Plane& plane, const std::byte* from, bool staged);
  Result<void> own_host_memory(const HostMemory& memory) const;
  Result<void> known_host_memory(HostMemory& memory);
  Result<void> upload_plane(std::uint64_t stream, const Memory& to, const Plane& plane, HostMemory& from);
  using Places = std::vector<Download>;
  Result<void> download_plane(std::uint64_t stream, Allocation& from, const Plane& plane, HostMemory& to, Places& places);
  template <class Check, class Walk>
  Result<void> download(std::uint64_t stream, const Binding& from, HostMemory& to, const std::uint64_t& bytes, Check&& check, Walk&& walk);
  Result<void> record_plane(std::uint64_t stream, const Memory& to, const Plane& plane, const std::byte* from);
  Result<void> write_staged(std::uint64_t stream, const Binding& to, const std::byte* from);
  Result<void> upload(std::uint64_t stream, const Binding& to, const void* from, Staging staging);
  Result<void> read_piece(std::uint64_t stream, const Binding& whole, const Binding& piece, std::byte* to);
  // `task`, of the kind Host or Download, reads the memory from byte `first` on. Waits for its turn; where nothing of `ranges` is claimed
  // `copy(const Task&)` takes the bytes. `noted()` is called under the lock of enqueueing once the read has its place. read_turn.h
  template <class Copy, class Noted>
  Result<void> read_in_turn(std::uint64_t stream, HeldTask& task, Allocation& memory, std::uint64_t first, std::vector<MemoryRange> ranges,
                            Copy&& copy, Noted&& noted);
  template <class Copy>
  Result<void> read_in_turn(std::uint64_t stream, HeldTask& task, Allocation& memory, std::uint64_t first, std::vector<MemoryRange> ranges,
                            Copy&& copy);
  void not_launched(const LaunchRequest& request, const Error& why);  // nothing looked at it yet, or what did had no memory
  void fill_params(const LaunchPlan& plan, const LaunchRequest& request, Task& task, std::uint32_t slot, const LaunchLogMemory* log);
  void collect_uses(const LaunchPlan& plan, const LaunchRequest& request);
  static void gather_uses(const LaunchPlan& plan, const LaunchRequest& request, LaunchUses& uses);  // of a launch that will run
  // Calls f(memory, writes) for each buffer that the launch reads or writes.
  template <class F>
  static void for_each_used(const LaunchPlan& plan, const LaunchRequest& request, F&& f);
  Result<std::uint32_t> take_fault_slot(const Program& program);
  LaunchLogMemory* take_log(const Program& program);  // null: it has none
  Event confirm();                                    // gives the first event that is still pending
  void confirm_in_passing() noexcept;                 // after something was enqueued, which must not fail by it
  bool time_to_confirm();  // now and then, so that neither log nor records fill up when nobody ever waits; under the enqueue lock
  Result<void> device_state(ErrorCode code = ErrorCode::DevicePoisoned) const;

  std::unique_ptr<Device> device_;
  std::unique_ptr<MemoryManager> memory_;
  std::atomic<std::uint64_t> moves_{0};  // changed under the lock of enqueueing
  Profiler profiler_{*device_, enqueue_};
  const unsigned process_ = process_number();
  const std::uint64_t fault_address_;
  FailureStore store_{&next_memory_};
  LaunchLog log_{store_};
  Programs programs_;
  FaultSlots slots_;
  LaunchLogs logs_;
  std::atomic<std::uint64_t> next_memory_{1};
  std::atomic<bool> told_lost_{false};

  struct Adopted {
    std::uint64_t address = 0, bytes = 0;
    std::weak_ptr<Allocation> memory;
    std::uint64_t id = 0;
    After after{};                                                     // of memory that is gone: who adopts it anew comes after
    std::shared_ptr<std::vector<std::shared_ptr<const void>>> owners;  // of memory that is there; the storage has them, too
  };
  void leave_adopted(const Allocation& allocation, const After& after) noexcept;
  std::mutex adopted_mutex_;
  std::vector<Adopted> adopted_;

  // Guards what follows and the events of all allocations: the one order of enqueueing. What a lane of it guards is said there.
  EnqueueLock enqueue_{store_, log_};
  IoSets sets_;  // reused, so that launches allocate nothing
  std::vector<BufferUse> uses_;
  static constexpr std::uint32_t kConfirmEach = 64;  // launches
  std::uint32_t since_confirm_ = 0;
  Captures captures_{*this};
  std::unique_ptr<Background> background_;
};

template <class F>
void LocalServer::for_each_used(const LaunchPlan& plan, const LaunchRequest& request, F&& f) {
  std::size_t buffer = 0;
  for (std::size_t i = 0; i < request.args.size(); ++i) {
    if (!plan.facts.params[i].is_buffer) continue;
    const ir::Visibility use = buffer < plan.io.size() ? plan.io[buffer] : ir::Visibility::ReadWrite;
    ++buffer;
    const Memory& memory = request.args[i].binding.memory;
    if (memory != nullptr && !request.args[i].binding.range.empty() && (ir::writes(use) || ir::reads(use))) f(memory, ir::writes(use));
  }
}

bool aligned_to_16(const LaunchRequest& request);  // all its buffers
// The memory of a binding for the bookkeeping.
MemoryRange memory_range(const Binding& binding);

}  // namespace kiln::rt
