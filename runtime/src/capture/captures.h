// The captures of a device's streams, and replays of the graphs that come of them. Part of the server: it orders, claims and notes as the
// server's own operations do.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <source_location>
#include <vector>

#include "src/capture/capture_state.h"
#include "src/capture/instances.h"
#include "src/memory/memory_capture.h"
#include "src/server.h"

namespace kiln::rt {

class LocalServer;

// What a Graph stands for.
struct GraphState {
  GraphState(std::shared_ptr<Server> keep, LocalServer& local) : server(std::move(keep)), owner(local) {}
  ~GraphState();
  GraphState(const GraphState&) = delete;

  const std::shared_ptr<Server> server;
  LocalServer& owner;
  std::unique_ptr<MemoryCapture> memory;  // goes after the buffers of `touches`
  std::shared_ptr<const GraphBody> body;
  IoSets sets;
  std::string lacking;                 // the kernel of a launch that was dropped instead of recorded; empty: none was
  GraphInstanceList instances;         // guarded by the lock of the instances
  std::atomic<bool> destroyed{false};  // changed under the enqueue lock
  // Guarded by the enqueue lock.
  std::vector<GraphTouch> touches;
  After replays;
};

class Captures {
 public:
  static constexpr std::size_t kInstances = 4;  // of a graph: its replays in flight, as a rule

  explicit Captures(LocalServer& server);
  ~Captures();  // nothing runs any more

  // --- of clients: what kiln/runtime/graph.h says --------------------------------------------------------------------------------
  // A token, never 0: the number of this capture. `where` is for timelines and the log.
  Result<std::uint64_t> prepare(std::uint64_t stream, const std::source_location& where);
  Result<void> begin(std::uint64_t stream, std::uint64_t token);
  Result<std::shared_ptr<GraphState>> end(std::uint64_t stream, std::uint64_t token, std::uint64_t caller);
  void abort(std::uint64_t stream, std::uint64_t token) noexcept;
  bool capturing(std::uint64_t stream) const { return is(prepared_, stream); }
  Result<void> replay(std::uint64_t stream, const std::shared_ptr<GraphState>& graph);
  Result<void> destroy(const std::shared_ptr<GraphState>& graph);
  void dropped(GraphState& graph) noexcept;  // the last copy is gone

  // --- of the server's operations ------------------------------------------------------------------------------------------------
  // Whether the stream is recorded now. One load.
  bool recording(std::uint64_t stream) const { return is(recording_, stream); }
  // Records the operation in the place of enqueueing it. Nothing: the stream is not recorded (any more). The arguments are valid.
  std::optional<Result<void>> record_launch(std::uint64_t stream, const LaunchPlan& plan, const Program& program,
                                            const LaunchRequest& request);
  std::optional<Result<void>> record_write(std::uint64_t stream, const Binding& to, const void* from);
  std::optional<Result<void>> record_fill(std::uint64_t stream, const Binding& to);
  std::optional<Result<void>> record_copy(std::uint64_t stream, const Binding& to, const Binding& from);
  std::optional<Result<void>> record_replay(std::uint64_t stream, const GraphState& graph);
  // A valid launch of the stream that a mode override dropped: where the stream is recorded its graph lacks it, and so is never run.
  void lacks(std::uint64_t stream, const LaunchPlan& plan, const LaunchRequest& request);
  // The error of an operation that a stream cannot do while it is recorded; success where it is not. `what`: "a read". One that was to be a
  // part of the graph dooms the capture.
  enum class Refused : std::uint8_t { Waits, IsPart };
  Result<void> refuse(std::uint64_t stream, const char* what, Refused how);
  // What an operation of the stream came to: a failure dooms its capture.
  Result<void> watch(std::uint64_t stream, Result<void> result) {
    if (!result.has_value() && recording(stream)) fail(stream, result.error());
    return result;
  }
  // The same of an operation that ended before it came to the server: it marks the stream's profile windows, too.
  Result<void> watch_refused(std::uint64_t stream, const Error& why);
  void fail(std::uint64_t stream, const Error& why);

  GraphInstances& instances() { return instances_; }
  void forget() noexcept {  // the device is another process's
    instances_.forget();
    for (auto& memory : memories_) (void)memory.release();
  }

 private:
  using Marks = std::array<std::atomic<std::uint64_t>, kQueues>;  // stream + 1; 0: none
  static bool is(const Marks& marks, std::uint64_t stream) { return marks[queue_of(stream)].load(std::memory_order_acquire) == stream + 1; }
  template <class Fill>
  std::optional<Result<void>> record(std::uint64_t stream, std::string_view name, Fill&& fill);
  std::optional<Result<void>> record_transfer(std::uint64_t stream, std::string_view name, RecordedOp given, const Binding& to,
                                              const Binding* from);
  Result<std::shared_ptr<GraphState>> end_now(std::uint64_t stream, std::uint64_t token, std::uint64_t caller);
  Result<std::shared_ptr<GraphState>> seal(const Recording& recording, const IoSets& sets, std::unique_ptr<MemoryCapture> memory,
                                           const std::source_location& where);
  Result<GraphInstance*> take_instance(GraphState& graph);
  Result<void> replay_now(std::uint64_t stream, GraphState& graph, bool& dropped);
  Result<Event> submit(std::uint64_t stream, GraphState& graph, GraphInstance& instance);
  void claim(std::span<const MemoryRange> writes, const Error& why) noexcept;
  // Of the queue, if the capture with that token is open there. Under the enqueue lock.
  CaptureState* open(std::uint64_t stream, std::uint64_t token);
  std::unique_ptr<MemoryCapture> close(std::uint32_t queue);  // to be ended without the lock

  LocalServer& server_;
  std::atomic<std::uint64_t> next_graph_{1};
  Marks prepared_{}, recording_{};  // for a look without a lock
  // Guarded by the enqueue lock.
  std::array<CaptureState, kQueues> states_;
  std::array<std::uint64_t, kQueues> tokens_{};  // of the open ones
  std::array<std::unique_ptr<MemoryCapture>, kQueues> memories_;
  std::array<std::source_location, kQueues> places_;  // of the open ones
  std::uint64_t last_token_ = 0;
  std::vector<MemoryRange> reads_;   // reused
  std::vector<GraphTouch> touches_;  // reused
  GraphInstances instances_;
};

}  // namespace kiln::rt
