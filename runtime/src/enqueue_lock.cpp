#include "src/enqueue_lock.h"

#include "src/fault_slots.h"

namespace kiln::rt {

void EnqueueLock::open(std::uint32_t queue) noexcept {
  std::unique_ptr<Lane>& lane = lanes_[queue];
  if (lane == nullptr) lane.reset(new (std::nothrow) Lane());
  if (lane == nullptr) return;
  {
    const std::lock_guard lock(lane->lock);
    lane->open = true;
    lane->opening = opening_;
  }
  open_.fetch_or(std::uint64_t{1} << queue, std::memory_order_release);
}

// Whoever is in a lane comes to its end first; nobody comes into one from then on.
void EnqueueLock::close() noexcept {
  for (std::uint64_t rest = open_.load(std::memory_order_relaxed); rest != 0; rest &= rest - 1) {
    Lane& lane = *lanes_[static_cast<std::size_t>(std::countr_zero(rest))];
    const std::lock_guard lock(lane.lock);
    lane.open = false;
    flush(lane);
  }
  opening_ = next_opening();
  open_.store(0, std::memory_order_release);
}

void EnqueueLock::give_back_slots(FaultSlots& slots) noexcept {
  for (const std::unique_ptr<Lane>& lane : lanes_) {
    if (lane == nullptr) continue;
    slots.give_back({lane->slots.data(), lane->slot_count});
    lane->slot_count = 0;
  }
}

std::uint64_t EnqueueLock::next_opening() noexcept {
  static std::atomic<std::uint64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace kiln::rt
