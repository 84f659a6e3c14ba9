// The part of the server that is about streams as such: host calls, events, and what a host call may wait for.
#include "src/stream_calls.h"

#include <utility>

#include "src/background.h"
#include "src/local_server.h"
#include "src/memory/memory_manager.h"
#include "src/profile/timelines.h"

namespace kiln::rt {
namespace {

class CallJob final : public QueueJob {
 public:
  CallJob(Device& device, Server::HostCall function, std::uint64_t stream, const std::source_location& where)
      : device_(device), function_(std::move(function)), stream_(stream), where_(where) {
    open.device = &device;
  }

  void run() noexcept override {
    CallOrder::begin(open);
    const InHostCall here;  // memory that others are at work on may be behind this
    make();
    function_ = nullptr;  // what it held may be the last of the server
    if (!open.over) finish();
    CallOrder::end(open);
  }
  void finish() noexcept {
    open.over = true;
    CallOrder::closed(open);
    device_.finish_host(*task);
  }

  struct Open : OpenCall {
    CallJob* job = nullptr;
  } open;

 private:
  void make() noexcept {
    try {
      const HostSpan span(stream_, where_);
      const auto poison = device_.poisoned();
      function_(poison ? &*poison : nullptr);
    } catch (...) {  // as kiln/runtime/client.h says
    }
  }

  Device& device_;
  Server::HostCall function_;
  const std::uint64_t stream_;
  const std::source_location where_;
};

}  // namespace

void end_own_call(const Device& device) noexcept {
  if (!CallOrder::in_call_of(device)) return;
  CallJob& job = *static_cast<CallJob::Open*>(CallOrder::current())->job;
  if (!job.open.over) job.finish();
}

Result<void> LocalServer::call_now(std::uint64_t stream, HostCall function, const std::source_location& where) {
  if (auto ok = captures_.refuse(stream, "a host call", Captures::Refused::IsPart); !ok.has_value()) return ok;
  const std::uint32_t queue = queue_of(stream);
  auto job = std::make_unique<CallJob>(*device_, std::move(function), stream, where);
  job->open.job = job.get();
  HeldTask task(*device_);
  task->kind = Task::Kind::Call;
  if (auto ok = background_->hold(queue); !ok.has_value()) return ok;
  job->task = &*task;
  const std::lock_guard lock(enqueue_);
  const Result<Event> event = task.submit(queue, After());
  if (!event.has_value()) {
    background_->let_go(queue);
    return event.error();
  }
  job->at = job->open.at = *event;
  CallOrder::opened(job->open);
  background_->add(std::move(job));
  return {};
}

Result<void> LocalServer::wait_event_now(std::uint64_t stream, const Point& point) {
  if (auto ok = captures_.refuse(stream, "a wait for an event", Captures::Refused::IsPart); !ok.has_value()) return ok;
  const Event event{point.queue, point.position};
  if (auto ok = device_state(); !ok.has_value()) return ok;
  if (event.queue == queue_of(stream) || device_->done(event)) return {};
  HeldTask task(*device_);
  task->kind = Task::Kind::Marker;
  const std::lock_guard lock(enqueue_);
  const Result<Event> place = task.submit(queue_of(stream), After(event));
  if (!place.has_value()) return place.error();
  return {};
}

// A place in a queue can be seen a moment before it is known what it waits for: the lock of enqueueing is held in between.
void LocalServer::settle_order() {
  if (CallOrder::current() == nullptr) return;
  const std::lock_guard lock(enqueue_);
}

Result<void> LocalServer::wait_for(const After& events) {
  settle_order();
  const CallOrder::Wait wait(*device_, events);
  if (!wait.allowed()) return CallOrder::waits_for_itself();
  events.for_each([&](Event e) { device_->wait(e); });
  confirm();
  return device_state();
}

// What a call has outstanding is bounded, as it is for everybody else, who wait for room; a call's room may be behind it.
Result<void> LocalServer::room_in_call() {
  OpenCall* const call = CallOrder::current();
  if (call == nullptr || call->device != device_.get() || call->over || call->behind + call->beside < CallOrder::kRoom) return {};
  if (call->behind >= CallOrder::kRoom) return CallOrder::too_much_behind();
  const After mine = call->mine;
  {
    const CallOrder::Wait wait(*device_, mine);
    if (!wait.allowed()) return CallOrder::waits_for_itself();
    mine.for_each([&](Event e) { device_->wait(e); });
  }
  call->mine.clear();
  call->beside = 0;
  return {};
}

}  // namespace kiln::rt
