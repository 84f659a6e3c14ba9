// Which operations wait for the end of a host call. A call may use clients; one that would wait for its own end, by whatever way, is told
// so instead of standing still for ever.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>

#include "kiln/runtime/error.h"
#include "src/events.h"

namespace kiln::rt {

class Device;

// A host call from the moment of enqueueing until it is over.
struct OpenCall {
  const Device* device = nullptr;
  Event at;
  std::array<std::uint64_t, kQueues> first{};  // in each queue the first position that waits for the call's end; 0: none
  // While it runs: what its thread has enqueued since it last waited for that, and what it waits for.
  std::uint32_t behind = 0, beside = 0;  // operations that wait for the call's end, and that do not
  After mine;                            // the latter
  const Device* waits_on = nullptr;      // null: it waits for nothing
  After waits_for;
  bool over = false;     // told before it returned, since its server goes away
  bool visited = false;  // by the search for a circle
  OpenCall *next = nullptr, *before = nullptr;
};

// Of all devices of the process. Where no call is open, which is nearly always, nothing here costs more than one load. Thread-safe; its
// lock is taken last and held for a moment.
class CallOrder {
 public:
  static constexpr std::uint32_t kRoom = 256;  // operations that a call has outstanding

  // Call them under the device's lock of enqueueing, in its order.
  static void submitted(const Device& device, Event event, const After& after) {
    if (any_open()) note(device, event, after);
  }
  static bool any_open() { return open_.load(std::memory_order_relaxed) != 0; }
  static void opened(OpenCall& call);

  static void closed(OpenCall& call);
  static void begin(OpenCall& call);  // on this thread
  static void end(OpenCall& call);
  static OpenCall* current() { return current_; }  // what this thread makes; null: no call
  static bool in_call_of(const Device& device) { return current_ != nullptr && current_->device == &device; }

  // Whether this thread may wait for these events, as far as calls are concerned. It makes no promise for later.
  static bool may_wait(const Device& device, const After& events) { return current_ == nullptr || !reaches(device, events); }
  // This thread waits for the events while this lives, unless it must not.
  class Wait {
   public:
    Wait(const Device& device, const After& events);
    ~Wait();
    Wait(const Wait&) = delete;
    Wait& operator=(const Wait&) = delete;
    bool allowed() const { return allowed_; }

   private:
    OpenCall* const call_ = current_;
    bool allowed_ = true;
  };

  static Error waits_for_itself();
  static Error too_much_behind();

 private:
  static void note(const Device& device, Event event, const After& after);
  static bool reaches(const Device& device, const After& events);
  static bool search(const Device& device, const After& events, const OpenCall& goal);

  inline static std::atomic<std::uint32_t> open_{0};
  inline static constinit thread_local OpenCall* current_ [[gnu::tls_model("initial-exec")]] = nullptr;
};

}  // namespace kiln::rt
