// Replays of graphs, and their end.
#include <new>

#include "src/capture/captures.h"
#include "src/launch_modes.h"
#include "src/local_server.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/server_enter.h"
#include "src/server_log.h"

namespace kiln::rt {
namespace {

Error destroyed_graph(const GraphBody& body) { return capture_error("GraphDestroyed", *body.name + " was destroyed; capture it anew"); }

Error incomplete_graph(const GraphBody& body, const std::string& kernel) {
  return make_error(ErrorCode::Validation, "GraphLacksLaunch",
                    *body.name +
                        " has not all that was issued, since a mode override dropped a launch while it was recorded; capture it "
                        "anew where launches run",
                    {.kernel = kernel});
}

// Taken for a replay, given back unless the log has it.
class HeldInstance {
 public:
  HeldInstance(GraphInstances& instances, GraphInstance& instance) : instances_(instances), instance_(&instance) {}
  ~HeldInstance() {
    if (instance_ != nullptr) instances_.give_back(*instance_);
  }
  HeldInstance(const HeldInstance&) = delete;
  void release() { instance_ = nullptr; }

 private:
  GraphInstances& instances_;
  GraphInstance* instance_;
};

}  // namespace

GraphState::~GraphState() { owner.captures().dropped(*this); }

void Captures::dropped(GraphState& graph) noexcept {
  if (server_.forked()) {
    for (GraphTouch& touch : graph.touches) new (&touch.memory) Memory;  // of the parent's
    new (&graph.body) std::shared_ptr<const GraphBody>;
    (void)graph.memory.release();
    return;
  }
  instances_.retire(graph.instances);
}

Result<void> Captures::replay(std::uint64_t stream, const std::shared_ptr<GraphState>& graph) {
  bool dropped = false;
  auto result = server_.enter_on(
      stream, [&] { return replay_now(stream, *graph, dropped); }, [&](const Error& why) { claim(graph->sets.writes, why); });
  if (logs(LogArea::Capture, LogLevel::Debug)) tell_replay(server_, stream, *graph->body, result, dropped);
  return watch(stream, std::move(result));
}

Result<void> Captures::replay_now(std::uint64_t stream, GraphState& graph, bool& dropped) {
  const GraphBody& body = *graph.body;
  if (graph.destroyed.load(std::memory_order_acquire)) return destroyed_graph(body);
  if (auto recorded = record_replay(stream, graph)) return std::move(*recorded);
  dropped = dropped_now(server_, stream);
  if (dropped) return {};  // its kernels were obtained, or queued, when it was captured
  if (!graph.lacking.empty()) {
    Error why = incomplete_graph(body, graph.lacking);
    claim(graph.sets.writes, why);
    return why;
  }
  if (body.ops.empty()) return server_.device_state(ErrorCode::LaunchDevicePoisoned);
  auto instance = take_instance(graph);
  if (!instance.has_value()) {
    claim(graph.sets.writes, instance.error());
    return instance.error();
  }
  auto at = submit(stream, graph, **instance);
  if (!at.has_value()) return at.error();
  return {};
}

// As a rule the first is free. A graph whose replays overlap has a few, and then the host waits for the first of those; but for one that
// waits for a line to be told it does not, if it is this thread that tells them.
Result<GraphInstance*> Captures::take_instance(GraphState& graph) {
  for (;;) {
    if (GraphInstance* instance = instances_.take(graph.instances)) return instance;
    if (instances_.size(graph.instances) < kInstances) {
      if (auto made = instances_.make(graph.body, graph.instances); made.has_value()) return made;
      // else there is one to wait for
    }
    server_.confirm();
    if (!server_.logs_.delivering()) server_.logs_.deliver(CallOrder::current() == nullptr);
    if (GraphInstance* instance = instances_.take(graph.instances)) return instance;
    const Event oldest = instances_.oldest(graph.instances);
    if (oldest.position == 0) return instances_.make(graph.body, graph.instances);  // all are in the hands of other threads
    const CallOrder::Wait wait(*server_.device_, After(oldest));
    if (!wait.allowed()) return CallOrder::waits_for_itself();
    server_.device_->wait(oldest);
  }
}

// As any launch: ordered behind what was done with the memory, under a scope over W, and noted in the log.
Result<Event> Captures::submit(std::uint64_t stream, GraphState& graph, GraphInstance& instance) {
  const GraphBody& body = *graph.body;
  HeldInstance held(instances_, instance);
  HeldTask task(*server_.device_);
  task->kind = Task::Kind::Graph;
  task->graph = instance.device_graph();
  task->label = {body.name.get(), &body.place, stream, true, body.ops.size()};
  Event at;
  bool noted = false, confirm_now = false;
  {
    const std::lock_guard lock(server_.enqueue_);
    if (graph.destroyed) return destroyed_graph(body);
    ExecuteScope scope = ExecuteScope::launching(server_.store_, *body.name, graph.sets);
    task->order = scope.stamp();
    const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
      After after;
      for (const GraphTouch& touch : graph.touches) {
        if (touch.writes) {
          if (auto error = server_.write_blocked(*touch.memory)) return std::move(*error);
        }
        if (touch.writes) order_write(*touch.memory, after);
        else order_read(*touch.memory, after);
      }
      const Result<Event> result = task.submit(queue_of(stream), after);
      if (!result.has_value()) return result.error();
      at = *result;
      return {};
    });
    if (outcome.kind != OutcomeKind::Executed) return outcome.result.error();
    for (const GraphTouch& touch : graph.touches) {
      if (touch.writes) note_write(*touch.memory, at);
      else note_read(*touch.memory, at);
    }
    graph.replays.add(at);
    instances_.submitted(instance, at);
    noted = server_.log_.append({.kind = LogKind::Graph,
                                 .name = body.name,
                                 .stamp = scope.stamp(),
                                 .reads = graph.sets.reads,
                                 .writes = graph.sets.writes,
                                 .covers = graph.sets.covers,
                                 .stream = at.queue,
                                 .position = at.position,
                                 .slot = instance.number()}) != 0;
    if (noted) held.release();
    confirm_now = server_.time_to_confirm();
  }
  if (!noted) {
    const CallOrder::Wait wait(*server_.device_, After(at));
    if (!wait.allowed()) {  // the records are lost
      held.release();
      return at;
    }
    server_.device_->wait(at);  // the log had no room: nobody will look at the records
    (void)server_.device_->refused(at);
    instances_.over(instance.number());
    held.release();
  }
  if (confirm_now) server_.confirm_in_passing();
  return at;
}

Result<void> Captures::destroy(const std::shared_ptr<GraphState>& graph) try {
  if (auto ok = server_.same_process(); !ok.has_value()) return ok.error();
  After replays;
  std::unique_ptr<MemoryCapture> pins;
  std::vector<GraphTouch> memory;
  {
    const std::lock_guard lock(server_.enqueue_);
    if (graph->destroyed) return destroyed_graph(*graph->body);
    if (!CallOrder::may_wait(*server_.device_, graph->replays)) return CallOrder::waits_for_itself();
    graph->destroyed = true;
    replays = graph->replays;
    pins = std::move(graph->memory);
    memory.swap(graph->touches);
  }
  replays.for_each([&](Event e) { server_.device_->wait(e); });
  server_.confirm();
  Result<void> result = server_.device_state();
  if (!result.has_value()) claim(graph->sets.writes, result.error());
  instances_.retire(graph->instances);
  instances_.sweep();
  server_.logs_.deliver(CallOrder::current() == nullptr);
  return result;
} catch (const std::bad_alloc&) { return no_host_memory(); }

}  // namespace kiln::rt
