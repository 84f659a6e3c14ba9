// A lock for what is held for a moment: whoever finds it held looks a few times before he sleeps.
#pragma once
#include <atomic>
#include <cstdint>

namespace kiln::rt {

// As std::mutex, of which it costs about half where nobody else wants it.
class ShortLock {
 public:
  ShortLock() = default;
  ShortLock(const ShortLock&) = delete;
  ShortLock& operator=(const ShortLock&) = delete;

  void lock() noexcept {
    if (!try_lock()) wait();
  }
  bool try_lock() noexcept {
    std::uint32_t free = kFree;
    return state_.compare_exchange_strong(free, kHeld, std::memory_order_acquire, std::memory_order_relaxed);
  }
  void unlock() noexcept {
    if (state_.exchange(kFree, std::memory_order_release) == kWanted) state_.notify_one();
  }

 private:
  enum : std::uint32_t { kFree, kHeld, kWanted };  // the last: held, and somebody may be asleep
  void wait() noexcept;

  std::atomic<std::uint32_t> state_{kFree};
};

}  // namespace kiln::rt
