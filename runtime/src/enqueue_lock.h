// The lock of enqueueing, which is one for a device, and its lanes, by which launches on different streams need not wait for each other.
//
// Whoever holds it whole is alone: nothing is enqueued meanwhile. Whoever holds a lane only, which is that of a queue, is alone with that
// queue and with the memory that belongs to the lane (Allocation::lane), and touches no other. So operations of two lanes have nothing in
// common, and it does not matter in which order they come into the launch log, nor which of them has the earlier stamp; what they noted
// is there, in the right order with all else, before anybody holds the lock whole. For the same reason whoever is in a lane may leave out
// of the log what is over and left nothing, where the log is empty: whatever concerned the lane's memory before it has been looked at.
#pragma once
#include <array>
#include <atomic>
#include <bit>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>

#include "src/events.h"
#include "src/failure/failure_store.h"
#include "src/failure/launch_log.h"
#include "src/short_lock.h"

namespace kiln::rt {

class FaultSlots;

// What a thread has set aside for launches in lanes, good as long as no lane was closed since: whoever holds the lock whole takes later
// ones.
struct LaneStamps {
  std::uint64_t opening = 0;  // of the lanes; 0: none
  Stamp next = 0, end = 0;
};

class EnqueueLock {
 public:
  struct alignas(64) Lane {
    ShortLock lock;
    // Guarded by `lock`.
    bool open = false;  // whoever holds it may go on
    std::uint32_t since_confirm = 0;
    std::uint64_t opening = 0;  // of lanes, by which it was opened
    Stamp last = 0;             // of what was enqueued in it
    LaneNotes notes;
    static constexpr std::size_t kTaken = 16;                       // slots at a time
    std::array<std::uint32_t, LaneNotes::kNotes + kTaken> slots{};  // of fault records, set aside
    std::size_t slot_count = 0;
  };

  EnqueueLock(FailureStore& store, LaunchLog& log) : store_(store), log_(log) {}
  EnqueueLock(const EnqueueLock&) = delete;
  EnqueueLock& operator=(const EnqueueLock&) = delete;

  // Whole.
  void lock() noexcept {
    all_.lock();
    if (open_.load(std::memory_order_relaxed) != 0) close();
  }
  void unlock() noexcept { all_.unlock(); }

  // Whether the lane of a queue is open. Without any lock. One that was closed by whoever held the lock whole opens again, beside the
  // others, where the rule is what it was (launched()).
  bool opens(std::uint32_t queue) noexcept {
    const std::uint64_t bit = std::uint64_t{1} << queue;
    if ((open_.load(std::memory_order_relaxed) & bit) != 0) return true;
    if ((ready_.load(std::memory_order_relaxed) & bit) == 0) return false;
    const std::lock_guard lock(all_);
    open(queue);
    return true;
  }
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

  // In the lane: a stamp later than that of all that concerned the lane's memory before. Threads take several at a time, so that not all
  // of them write the one clock for each launch.
  Stamp stamp_in(Lane& lane) noexcept {
    LaneStamps& mine = stamps_;
    if (mine.opening != lane.opening || mine.next == mine.end || mine.next <= lane.last) {
      mine.opening = lane.opening;
      mine.next = store_.take_stamps(kStamps);
      mine.end = mine.next + kStamps;
    }
    return lane.last = mine.next++;
  }

  // Held whole, after a launch on the queue. `alone`: all that it touches was the lane's before. The lane opens once that is the rule.
  void launched(std::uint32_t queue, bool alone) noexcept {
    std::uint8_t& row = rows_[queue];
    if (!alone) row = 0;
    else if (row < kRow) ++row;
    const std::uint64_t bit = std::uint64_t{1} << queue, ready = ready_.load(std::memory_order_relaxed);
    if (const std::uint64_t now = row == kRow ? ready | bit : ready & ~bit; now != ready) ready_.store(now, std::memory_order_relaxed);
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
  // Held whole. Gives back the slots that lanes have set aside.
  void give_back_slots(FaultSlots& slots) noexcept;

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

  static constexpr Stamp kStamps = 64;
  static std::uint64_t next_opening() noexcept;  // of the process, so that it tells servers apart, too
  inline static constinit thread_local LaneStamps stamps_ [[gnu::tls_model("initial-exec")]];

  FailureStore& store_;
  LaunchLog& log_;
  ShortLock all_;
  // Queues whose lanes are open, and those whose may be. Changed under `all_`.
  std::atomic<std::uint64_t> open_{0}, ready_{0};
  std::array<std::unique_ptr<Lane>, kQueues> lanes_;  // made once, before they open
  // Guarded by `all_`.
  std::array<std::uint8_t, kQueues> rows_{};  // launches one behind the other that were alone
  std::uint64_t opening_ = next_opening();    // another one whenever lanes were closed
};

}  // namespace kiln::rt
