#include "src/call_order.h"

#include <cstddef>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "src/make_error.h"

namespace kiln::rt {
namespace {

// Immortal: servers of static lifetime may outlive every other static. And there without memory: a call whose task was submitted has to be
// noted, or nobody comes to end it.
struct Calls {
  std::mutex mutex;
  OpenCall* first = nullptr;
};
Calls& calls() {
  alignas(Calls) static std::byte room[sizeof(Calls)];
  static Calls& all = *new (room) Calls;
  return all;
}

bool waits_for(const OpenCall& call, const After& events) {
  bool found = false;
  events.for_each([&](Event e) { found = found || (call.first[e.queue] != 0 && call.first[e.queue] <= e.position); });
  return found;
}

}  // namespace

void CallOrder::opened(OpenCall& call) {
  call.first[call.at.queue] = call.at.position;
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  call.next = all.first;
  call.before = nullptr;
  if (all.first != nullptr) all.first->before = &call;
  all.first = &call;
  open_.fetch_add(1, std::memory_order_relaxed);
}

void CallOrder::closed(OpenCall& call) {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  (call.before != nullptr ? call.before->next : all.first) = call.next;
  if (call.next != nullptr) call.next->before = call.before;
  open_.fetch_sub(1, std::memory_order_relaxed);
}

void CallOrder::begin(OpenCall& call) { current_ = &call; }
void CallOrder::end(OpenCall&) { current_ = nullptr; }

void CallOrder::note(const Device& device, Event event, const After& after) {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  for (OpenCall* call = all.first; call != nullptr; call = call->next) {
    if (call->device != &device) continue;
    std::uint64_t& first = call->first[event.queue];
    if (first == 0 && waits_for(*call, after)) first = event.position;
    if (call != current_) continue;
    if (first != 0) {
      ++call->behind;
    } else {
      ++call->beside;
      call->mine.add(event);
    }
  }
}

// From wait to wait: what waits for a call that waits for what waits for the goal.
bool CallOrder::search(const Device& device, const After& events, const OpenCall& goal) {
  for (OpenCall* call = calls().first; call != nullptr; call = call->next) {
    if (call->device != &device || call->visited || !waits_for(*call, events)) continue;
    if (call == &goal) return true;
    call->visited = true;
    if (call->waits_on != nullptr && search(*call->waits_on, call->waits_for, goal)) return true;
  }
  return false;
}

bool CallOrder::reaches(const Device& device, const After& events) {
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  for (OpenCall* call = all.first; call != nullptr; call = call->next) call->visited = false;
  return search(device, events, *current_);
}

CallOrder::Wait::Wait(const Device& device, const After& events) {
  if (call_ == nullptr || call_->over) return;
  Calls& all = calls();
  const std::lock_guard lock(all.mutex);
  for (OpenCall* call = all.first; call != nullptr; call = call->next) call->visited = false;
  allowed_ = !search(device, events, *call_);
  if (!allowed_) return;
  call_->waits_on = &device;
  call_->waits_for = events;
}

CallOrder::Wait::~Wait() {
  if (call_ == nullptr || call_->over || !allowed_) return;
  const std::lock_guard lock(calls().mutex);
  call_->waits_on = nullptr;
}

Error CallOrder::waits_for_itself() {
  return make_error(
      ErrorCode::Validation, "WaitsForItself",
      "a host call would wait for work that starts only when the call has returned: work behind it in its stream, in a stream that shares "
      "a queue with it, or work that waits for either; let the call return first, or wait for what was enqueued before it");
}

Error CallOrder::too_much_behind() {
  return make_error(ErrorCode::Validation, "TooMuchBehindCall",
                    "a host call may enqueue no more than " + std::to_string(kRoom) +
                        " operations that start only when it has returned; let it return, and go on in another call",
                    {.requested = std::uint64_t{kRoom} + 1, .limit = kRoom});
}

}  // namespace kiln::rt
