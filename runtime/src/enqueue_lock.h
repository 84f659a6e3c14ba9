// The lock of enqueueing, which is one for a device, and its lanes, by which launches on different streams need not wait for each other.
//
// Whoever holds it whole is alone: nothing is enqueued meanwhile. Whoever holds a lane only, which is that of a queue, is alone with that
// queue and with the memory that belongs to the lane (Allocation::lane), and touches no other. So operations of two lanes have nothing in
// common, and it does not matter in which order they come into the launch log; what they noted is there, in the right order with all else,
// before anybody holds the lock whole.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "src/events.h"
#include "src/failure/launch_log.h"
#include "src/short_lock.h"

namespace kiln::rt {

class EnqueueLock {
 public:
  struct alignas(64) Lane {
    ShortLock lock;
    // Guarded by `lock`.
    bool open = false;  // whoever holds it may go on
    std::uint32_t since_confirm = 0;
    LaneNotes notes;
    std::array<std::uint32_t, 16> slots{};  // of fault records, taken together
    std::size_t slot_count = 0;
  };

  explicit EnqueueLock(LaunchLog& log) : log_(log) {}
  EnqueueLock(const EnqueueLock&) = delete;
  EnqueueLock& operator=(const EnqueueLock&) = delete;

  // Whole.
  void lock() noexcept {
    all_.lock();
    if (open_.load(std::memory_order_relaxed) != 0) close();
  }
  void unlock() noexcept { all_.unlock(); }

  bool is_open(std::uint32_t queue) const noexcept { return (open_.load(std::memory_order_relaxed) >> queue & 1) != 0; }
  // Holds the lane of a queue while this lives; false: it is closed, and the lock is needed whole.
  class InLane {
   public:
    InLane(EnqueueLock& lock, std::uint32_t queue) noexcept : lane_(lock.enter(queue)) {}
    ~InLane() {
      if (lane_ != nullptr) lane_->lock.unlock();
    }
    InLane(const InLane&) = delete;
    InLane& operator=(const InLane&) = delete;
    explicit operator bool() const { return lane_ != nullptr; }
    Lane& operator*() const { return *lane_; }

   private:
    Lane* const lane_;
  };

  // Held whole, after a launch on the queue. `alone`: all that it touches was the lane's before. The lane opens once that is the rule.
  void launched(std::uint32_t queue, bool alone) noexcept {
    std::uint8_t& row = rows_[queue];
    if (!alone) row = 0;
    else if (row < kRow) ++row;
    if (row == kRow) open(queue);
  }

  // Puts into the log what was noted in the lanes, or in one. Without the lock, or under any lock that is taken before it.
  void flush() noexcept {
    for (std::uint64_t rest = open_.load(std::memory_order_acquire); rest != 0; rest &= rest - 1)
      flush(static_cast<std::uint32_t>(std::countr_zero(rest)));
  }
  void flush(std::uint32_t queue) noexcept {
    if (const InLane in(*this, queue); in) flush(*in);  // else it is in the log
  }
  void flush(Lane& lane) noexcept { log_.append(lane.notes); }

 private:
  static constexpr std::uint8_t kRow = 8;
  Lane* enter(std::uint32_t queue) noexcept {
    if ((open_.load(std::memory_order_acquire) >> queue & 1) == 0) return nullptr;
    Lane& lane = *lanes_[queue];
    lane.lock.lock();
    if (lane.open) return &lane;
    lane.lock.unlock();
    return nullptr;
  }
  void open(std::uint32_t queue) noexcept;
  void close() noexcept;

  LaunchLog& log_;
  ShortLock all_;
  std::atomic<std::uint64_t> open_{0};                // queues whose lanes are open; changed under `all_`
  std::array<std::unique_ptr<Lane>, kQueues> lanes_;  // made once, before they open
  std::array<std::uint8_t, kQueues> rows_{};          // launches one behind the other that were alone; guarded by `all_`
};

}  // namespace kiln::rt
