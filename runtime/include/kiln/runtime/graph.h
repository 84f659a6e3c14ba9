// Graphs: what a stream is given between begin() and end() of a capture is not run but recorded, and can then be replayed as one operation,
// as often as wanted, for much less of the host's time than issuing it again.
//
//   GraphCapture capture = GraphCapture::prepare(stream).value();
//   step(stream);                      // warm-up, if wanted: runs as always
//   capture.begin().value();
//   step(stream);                      // launches, copies, fills, writes from the host: recorded
//   Graph graph = capture.end().value();
//   for (int i = 0; i < 1000; ++i) graph.replay(stream).value();
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <source_location>
#include <utility>

#include "kiln/runtime/client.h"

namespace kiln {
namespace rt {
struct GraphState;
}

// Recorded operations in the order in which they were issued, with the memory that they use, which a graph keeps. A value: copies are one
// graph, which ends with the last of them; a replay that runs then runs to its end. Thread-safe, but for changing one Graph object.
class Graph {
 public:
  Graph() = default;  // none: replaying it is an error
  explicit operator bool() const { return state_ != nullptr; }
  std::uint64_t id() const;        // as errors name it ("graph 3"), from 1 on for each device; 0: none
  std::size_t operations() const;  // recorded: launches, copies, fills, writes

  // Enqueues the operations as one, on any stream of the graph's device: ordered with all other work on the buffers that they use, as a
  // launch is. R is what the graph reads before it has overwritten it, W what it writes, C what it overwrites whole (docs/failures.md):
  // with a claimed R the replay is skipped and W carries the failure; one that cannot be enqueued, or in which a launch faults, claims W.
  // The operations are what they were when they were recorded: the same memory, scalars and bytes from the host. A few replays are in
  // flight at a time, one more waits for the first of them. On a stream that is recorded itself the operations become a part of what is
  // recorded. Errors: NoGraph, GraphDestroyed, GraphLacksLaunch (launches were dropped while it was recorded: W is claimed), ForeignHandle,
  // Skipped, those of the device. Allocates nothing once as many replays were in flight before. The host's time grows with the buffers and
  // ranges that the graph uses, and by a look at 64 bytes for each launch in it.
  Result<void> replay(const Stream& stream) const;

  // Ends the graph for all copies: waits for its replays, says what the device says of them, and gives up its memory. When that fails W is
  // claimed. Errors: NoGraph, GraphDestroyed, those of the device. Not needed: the last copy's end does the same without waiting.
  Result<void> destroy() const;

  bool operator==(const Graph&) const = default;

 private:
  friend class GraphCapture;
  explicit Graph(std::shared_ptr<rt::GraphState> state) : state_(std::move(state)) {}
  std::shared_ptr<rt::GraphState> state_;
};

// The capture of a stream, from prepare() until end() or abort(), whichever is first; destroying it aborts. For one thread at a time, while
// any thread may use the stream. Other streams and what waits for them go on as always, those folded on the same queue too; but of those
// streams only one at a time can be captured (CaptureOpen).
//
// While it records, the stream takes launches, copies, fills, writes from the host (their bytes are kept in the graph) and replays. What
// would wait for what has not run (a read, a sync of the stream) is refused with rule NotInCapture and does no harm. What was to be a part
// of the graph and cannot be, because it is refused, fails, reads claimed bytes, or is nothing that a graph holds (a function of the host,
// a grid that is read on the device, a wait for an event, a kernel of a module that Kiln did not compile, new device memory:
// PageUpdateForbidden), dooms the capture: end() gives no graph.
class GraphCapture {
 public:
  // The stream is captured from now on, but not recorded yet: what it does until begin() runs as always, and the memory that it lets go of
  // is kept for the recording. `where` is what timelines show of the graph's replays. Errors: CaptureOpen.
  static Result<GraphCapture> prepare(const Stream& stream, std::source_location where = std::source_location::current());
  GraphCapture(GraphCapture&& o) noexcept : stream_(o.stream_), token_(std::exchange(o.token_, 0)) {}
  GraphCapture& operator=(GraphCapture&& o) noexcept;
  GraphCapture(const GraphCapture&) = delete;
  ~GraphCapture() { abort(); }

  const Stream& stream() const { return stream_; }

  // From now on operations of the stream are recorded. Errors: CaptureNotPrepared (also when it records already), and nothing changes.
  Result<void> begin();
  // The graph of what was recorded. Whatever it gives, the capture is over. Errors: CaptureNotRecording (also before begin());
  // CaptureDoomed with the first failure as its cause, and then what the recorded operations were to write is claimed by it; those of the
  // device that could not make the graph, likewise.
  Result<Graph> end();
  // The same on behalf of another stream of the device. That is a mistake when it is not the stream that was prepared: what was recorded is
  // torn down and claimed, and the error is Several: CaptureAbandoned, and the failure that had doomed the capture, if one had.
  // ForeignHandle: a stream of another device, and the capture goes on.
  Result<Graph> end(const Stream& caller);
  // Drops what was recorded. Nothing is claimed: the bytes are what they were.
  void abort() noexcept;

 private:
  GraphCapture(Stream stream, std::uint64_t token) : stream_(std::move(stream)), token_(token) {}
  Stream stream_;
  std::uint64_t token_;  // 0: over, or moved from
};

// Whether the stream is being captured, from prepare() on, by whichever client. Does not wait.
bool is_capturing(const Stream& stream);

// Captures what `body()` gives the stream. An exception of the body goes through and leaves no capture.
template <class Body>
Result<Graph> capture(const Stream& stream, Body&& body, std::source_location where = std::source_location::current()) {
  Result<GraphCapture> capture = GraphCapture::prepare(stream, where);
  if (!capture.has_value()) return capture.error();
  if (Result<void> begun = capture->begin(); !begun.has_value()) return begun.error();
  std::forward<Body>(body)();
  return capture->end();
}

}  // namespace kiln
