// Queues of a device, points in them, and sets of such points.
#pragma once
#include <array>
#include <cstdint>

#include "kiln/runtime/client.h"

namespace kiln::rt {

// Streams are folded on the queues of a device: tasks of one queue run in the order of submission. First come those of streams, by
// priority; then those for streams of somebody else's that were adopted, whose ids carry the bit and the queue; then one for each of these
// all, for the default stream of the thread that makes a host call of it: what a call does there never waits behind the call.
inline constexpr unsigned kNormalQueues = 20, kHighQueues = 4, kLowQueues = 4;
inline constexpr unsigned kOwnQueues = kNormalQueues + kHighQueues + kLowQueues;
inline constexpr unsigned kAdoptedQueues = 4;
inline constexpr unsigned kStreamQueues = kOwnQueues + kAdoptedQueues;
inline constexpr unsigned kQueues = 2 * kStreamQueues;
static_assert(kStreamQueues == 32 && kQueues <= 64);
inline constexpr std::uint64_t kAdoptedStream = std::uint64_t{1} << 63;

// A stream's id carries its priority: 0 for normal in two bits below the highest, so that ids of ordinary streams are small numbers.
inline constexpr unsigned kStreamPriorityShift = 61;
constexpr std::uint64_t stream_priority_bits(StreamPriority p) {
  return std::uint64_t{p == StreamPriority::Normal ? 0u : p == StreamPriority::High ? 1u : 2u} << kStreamPriorityShift;
}
constexpr StreamPriority stream_priority(std::uint64_t stream) {
  const auto bits = stream >> kStreamPriorityShift & 3;
  return bits == 0 ? StreamPriority::Normal : bits == 1 ? StreamPriority::High : StreamPriority::Low;
}
constexpr std::uint32_t queue_of(std::uint64_t stream) {
  const std::uint64_t number = stream & ~(kAdoptedStream | std::uint64_t{3} << kStreamPriorityShift);  // without the priority
  if ((stream & kAdoptedStream) != 0) return static_cast<std::uint32_t>(number % kQueues);
  switch (stream_priority(stream)) {
    case StreamPriority::High: return static_cast<std::uint32_t>(kNormalQueues + number % kHighQueues);
    case StreamPriority::Low: return static_cast<std::uint32_t>(kNormalQueues + kHighQueues + number % kLowQueues);
    case StreamPriority::Normal: break;
  }
  return static_cast<std::uint32_t>(number % kNormalQueues);
}
// Of the tasks in a queue.
constexpr StreamPriority priority_of(std::uint32_t queue) {
  if (queue < kNormalQueues || queue >= kOwnQueues) return StreamPriority::Normal;
  return queue < kNormalQueues + kHighQueues ? StreamPriority::High : StreamPriority::Low;
}
// The default stream of a thread that makes a call of that queue.
constexpr std::uint64_t call_stream(std::uint32_t queue) { return kAdoptedStream | (queue ^ kStreamQueues); }
constexpr bool is_adopted(std::uint64_t stream) {
  return (stream & kAdoptedStream) != 0 && queue_of(stream) >= kOwnQueues && queue_of(stream) < kStreamQueues;
}

// A point in a queue: the task that was submitted there as number `position`, from 1 on. Position 0: nothing.
struct Event {
  std::uint32_t queue = 0;
  std::uint64_t position = 0;
};

// A set of events; a later event of a queue includes the earlier ones, so it never grows beyond one a queue. There is room for all of them
// in it, so that nothing here allocates or throws; what it costs is by the events that it has, which are few.
class After {
 public:
  After() = default;
  explicit After(Event e) { add(e); }
  After(const After& o) noexcept { *this = o; }
  After& operator=(const After& o) noexcept {
    mask_ = o.mask_;
    count_ = o.count_;
    for (std::uint32_t i = 0; i < count_; ++i) at_[i] = o.at_[i];
    return *this;
  }
  void add(Event e) {
    if (e.position == 0) return;
    const std::uint64_t bit = std::uint64_t{1} << e.queue, given = e.position << kQueueBits | e.queue;
    if ((mask_ & bit) == 0) {
      mask_ |= bit;
      at_[count_++] = given;
      return;
    }
    std::uint32_t i = 0;
    while ((at_[i] ^ given) % kQueues != 0) ++i;
    if (at_[i] < given) at_[i] = given;
  }
  void add(const After& other) {
    other.for_each([this](Event e) { add(e); });
  }
  void clear() {
    mask_ = 0;
    count_ = 0;
  }
  bool empty() const { return count_ == 0; }
  bool has(std::uint32_t queue) const { return (mask_ >> queue & 1) != 0; }
  template <class F>
  void for_each(F&& f) const {
    for (std::uint32_t i = 0; i < count_; ++i) f(Event{static_cast<std::uint32_t>(at_[i] % kQueues), at_[i] >> kQueueBits});
  }

 private:
  static constexpr unsigned kQueueBits = 6;
  static_assert(kQueues == 1u << kQueueBits);
  std::uint64_t mask_ = 0;                 // of the queues
  std::uint32_t count_ = 0;                // of the events
  std::array<std::uint64_t, kQueues> at_;  // the first `count_`: a position, and its queue below it
};

}  // namespace kiln::rt
