// The part of the server that opens and ends profile windows.
#include <chrono>

#include "kiln/runtime/profile.h"
#include "src/local_server.h"
#include "src/make_error.h"
#include "src/profile/profiler.h"
#include "src/server_log.h"

namespace kiln {
namespace rt {
namespace {

Error not_registered(std::uint64_t number) {
  return make_error(ErrorCode::NotRegistered, "NotRegistered",
                    "there is no profile window " + std::to_string(number) +
                        " on this device: it was ended or abandoned before, or opened on another device");
}

}  // namespace

// A place in the queue at which the device notes the time. It owns the mark until it is handed on.
Result<Event> LocalServer::submit_mark(std::uint32_t queue, TimeMark*& mark) {
  auto taken = profiler_.marks().take();
  if (!taken.has_value()) return taken.error();
  HeldTask task(*device_);
  task->kind = Task::Kind::Marker;
  task->end = *taken;
  const std::unique_lock lock(enqueue_);
  Result<Event> event = task.submit(queue, {});
  if (event.has_value()) mark = *taken;
  else profiler_.marks().give_back(*taken);
  return event;
}

Result<std::uint64_t> LocalServer::start_profile_now(std::uint64_t stream, bool at_launch) {
  if (auto ok = device_state(); !ok.has_value()) return ok.error();
  if (auto ok = captures_.refuse(stream, "the start of a profile window", Captures::Refused::Waits); !ok.has_value()) return ok.error();
  if (at_launch) return profiler_.open_at_launch(queue_of(stream));
  TimeMark* mark = nullptr;
  const Result<Event> event = submit_mark(queue_of(stream), mark);
  if (!event.has_value()) return event.error();
  return profiler_.open(queue_of(stream), mark, *event);
}

Result<std::chrono::nanoseconds> LocalServer::end_profile_now(std::uint64_t stream, std::uint64_t number) {
  if (auto ok = captures_.refuse(stream, "the end of a profile window", Captures::Refused::Waits); !ok.has_value()) return ok.error();
  const auto ending = profiler_.ending(number);
  if (!ending) return not_registered(number);
  if (ending->error || !ending->begun) return profiler_.close(number, nullptr);
  const After before(device_->last(ending->queue));
  settle_order();
  const CallOrder::Wait wait(*device_, before);
  if (!wait.allowed()) return CallOrder::waits_for_itself();
  TimeMark* mark = nullptr;
  const Result<Event> event = submit_mark(ending->queue, mark);
  if (event.has_value()) {
    profiler_.ends_at(number, *event);
    device_->wait(*event);
    confirm();
  }
  auto time = profiler_.close(number, mark);
  profiler_.marks().give_back(mark);
  if (time.has_value() || time.error().code() != ErrorCode::NotMeasured) {
    if (auto ok = device_state(); !ok.has_value()) return ok.error();
  }
  if (!event.has_value()) return event.error();
  return time;
}

Result<void> LocalServer::abandon_profile_now(std::uint64_t number) {
  if (profiler_.abandon(number)) return {};
  return not_registered(number);
}

}  // namespace rt

static void tell(const Stream& stream, std::uint64_t window, const char* what, const Result<std::chrono::nanoseconds>* time = nullptr) {
  if (rt::logs(rt::LogArea::Profile, rt::LogLevel::Debug)) rt::tell_window(stream.client().server(), stream.id(), window, what, time);
}

static Result<ProfileToken> start(const Stream& stream, bool at_launch) {
  const auto number = stream.client().server().start_profile(stream.id(), at_launch);
  if (!number.has_value()) return number.error();
  tell(stream, *number, at_launch ? "opens at launch" : "opened");
  return ProfileToken{*number};
}

Result<ProfileToken> start_profile(const Stream& stream) { return start(stream, false); }
Result<ProfileToken> start_profile_at_launch(const Stream& stream) { return start(stream, true); }
Result<std::chrono::nanoseconds> end_profile(const Stream& stream, ProfileToken window) {
  auto time = stream.client().server().end_profile(stream.id(), window.number);
  tell(stream, window.number, "ended", &time);
  return time;
}
Result<void> abandon_profile(const Stream& stream, ProfileToken window) {
  auto done = stream.client().server().abandon_profile(window.number);
  if (done.has_value()) tell(stream, window.number, "abandoned");
  return done;
}

}  // namespace kiln
