// The state of the driver and the rules that more than one entry point needs. One lock guards all of it; it is never held while work runs
// or while somebody waits.
#pragma once
#include <atomic>
#include <deque>

#include "cuda/driver_entries.h"
#include "simcuda/driver_handles.h"
#include "simcuda/driver_objects.h"

namespace kiln::simcuda {

enum class Entry : std::uint8_t {
#define KILN_SIMCUDA_ENTRY(name, symbol, version, params) name,
  KILN_CUDA_ENTRIES(KILN_SIMCUDA_ENTRY)
#undef KILN_SIMCUDA_ENTRY
};

// What cannot be answered by an operation's own result: one thread's stack of contexts. No destructor, for calls during a thread's end.
struct ThreadState {
  static constexpr int kDepth = 64;
  CUcontext stack[kDepth];
  int depth;
  bool in_host_function;
  CUstreamCaptureMode capture_mode;  // how far captures forbid it things
};
ThreadState& this_thread();

class Driver {
 public:
  static Driver& get();

  // --- life ---------------------------------------------------------------------------------------------------------------------------
  // Whether `entry` may do anything now; counts the script's faults of calls.
  CUresult admit(Entry entry);
  CUresult initialise(Lock& lock);
  void configure(Lock& lock, const std::string& json);
  // Back to before cuInit: waits for all work and drops every object.
  void reset(Lock& lock);
  void shut_down();
  int driver_version();

  // --- contexts -----------------------------------------------------------------------------------------------------------------------
  // The calling thread's context, usable and not poisoned; else the code that says why not.
  CUresult current(Context*& context);
  Context* context_of(CUcontext handle);
  Context* device(int ordinal);
  void activate(Context& context);
  // Gives back one reference; with the last one the context's work is waited for and everything of it dies.
  void release(Lock& lock, Context& context);
  void poison(Context& context, const Failure& failure);

  // --- objects ------------------------------------------------------------------------------------------------------------------------
  // A live stream (or the current context's null stream) whose context is not poisoned; the caller has a current context.
  CUresult stream(CUstream handle, Context& current, Stream*& stream);
  CUresult event(CUevent handle, Event*& event);
  // Of the calling thread's context.
  CUresult function(CUfunction handle, Function*& function);
  // Forgets a stream; its work goes on.
  void retire(Stream& stream);

  // --- order --------------------------------------------------------------------------------------------------------------------------
  std::vector<OperationPtr> predecessors(const Stream& stream);
  // Work that a stream has to do next, or a node of the graph that it captures. `operation` is null when captured.
  CUresult enqueue(Stream& stream, std::shared_ptr<const Work> work, OperationPtr* operation = nullptr);
  // A point in the order: behind the stream's work and `after`.
  OperationPtr mark(Stream& stream, const std::vector<OperationPtr>& after, bool is_event);
  OperationPtr operation_of(const std::shared_ptr<const Work>& work, unsigned stream_number);
  // All work of the context so far.
  std::vector<OperationPtr> all_work(const Context& context);

  // --- capture ------------------------------------------------------------------------------------------------------------------------
  // For a call that a capture of this or another thread's may forbid ("potentially unsafe").
  CUresult unsafe_call();
  // For a use of the stream that is neither enqueued nor allowed in a capture.
  CUresult use_outside_capture(Stream& stream);
  // A null stream may not be used while a blocking stream of its context captures.
  CUresult legacy_rule(Stream& stream);
  void invalidate(Capture& capture);
  void end_capture(const std::shared_ptr<Capture>& capture);
  bool captures(const Context& context, bool blocking_only) const;

  // --- memory -------------------------------------------------------------------------------------------------------------------------
  // The active context whose device memory holds the address.
  Context* owner(std::uint64_t address, std::uint64_t* begin = nullptr, std::uint64_t* bytes = nullptr);
  // The pinned allocation that holds all the bytes.
  std::map<std::uint64_t, Pinned>::iterator pinned(const void* pointer, std::uint64_t bytes);
  // What of the work that is not done was given memory in this range: a sentence, or empty.
  std::string used_by(std::uint64_t address, std::uint64_t bytes) const;

  // --- reports ------------------------------------------------------------------------------------------------------------------------
  void report(const std::string& text);

  std::mutex mutex;
  Scheduler scheduler;
  Script script;
  std::deque<Context> contexts;
  HandleTable<Context, CUcontext> context_handles{1};
  HandleTable<Stream, CUstream> streams{2};
  HandleTable<Event, CUevent> events{3};
  HandleTable<LoadedModule, CUmodule> modules{4};
  HandleTable<Function, CUfunction> functions{5};
  HandleTable<Graph, CUgraph> graphs{6};
  HandleTable<GraphExec, CUgraphExec> graph_execs{7};
  std::map<std::uint64_t, Pinned> pinned_memory;
  std::vector<std::shared_ptr<Capture>> active_captures;
  unsigned streams_made = 0;
  std::atomic<std::uint64_t> launches{0}, instructions{0}, reports{0};
  std::string last_report;
  std::vector<std::byte> null_params;  // where a null driver copies parameters to

 private:
  Driver();
  std::optional<Failure> execute(Operation& operation);
  void read_descriptions();
  void deactivate(Context& context);

  std::optional<std::vector<DeviceDescription>> descriptions_;  // as they were read, until the script changes

  std::atomic<bool> initialised_{false}, shut_down_{false}, forked_{false}, call_faults_{false};
};

// The frame of every entry point: what no call may do, the lock, and no exception into the caller.
template <class Body>
CUresult entry_point(Entry entry, Body body) noexcept {
  try {
    Driver& driver = Driver::get();
    if (const CUresult code = driver.admit(entry); code != CUDA_SUCCESS) return code;
    Lock lock(driver.mutex);
    return body(driver, lock);
  } catch (const std::bad_alloc&) { return CUDA_ERROR_OUT_OF_MEMORY; } catch (...) {
    return CUDA_ERROR_OPERATING_SYSTEM;
  }
}
// The same with the calling thread's context.
template <class Body>
CUresult context_entry_point(Entry entry, Body body) noexcept {
  return entry_point(entry, [&](Driver& driver, Lock& lock) -> CUresult {
    Context* context = nullptr;
    if (const CUresult code = driver.current(context); code != CUDA_SUCCESS) return code;
    return body(driver, lock, *context);
  });
}

}  // namespace kiln::simcuda

// Leaves the function with the code of what did not succeed.
#define KILN_SIMCUDA_TRY(expression) \
  if (const ::kiln::cuda::CUresult code_ = (expression); code_ != ::kiln::cuda::CUDA_SUCCESS) return code_

// The entry points, as the library exports them.
#define KILN_SIMCUDA_EXPORT extern "C" __attribute__((visibility("default")))
namespace kiln::cuda {
#define KILN_SIMCUDA_DECLARE(name, symbol, version, params) KILN_SIMCUDA_EXPORT CUresult symbol params;
KILN_CUDA_ENTRIES(KILN_SIMCUDA_DECLARE)
#undef KILN_SIMCUDA_DECLARE
}  // namespace kiln::cuda
