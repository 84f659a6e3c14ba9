// What one launch does with memory, gathered before any lock is taken.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "src/allocation.h"
#include "src/failure/io_sets.h"

namespace kiln::rt {

// On the stack of whoever launches, once at a time on a thread: where a kernel has more buffers than there is room for, what is kept for
// the thread is used, so that launches allocate nothing.
class LaunchUses {
 public:
  struct Touch {
    Allocation* memory;
    bool writes;  // else it reads
  };

  explicit LaunchUses(std::size_t most) : most_(most) {
    if (most > kFew) take_many();
  }
  LaunchUses(const LaunchUses&) = delete;
  LaunchUses& operator=(const LaunchUses&) = delete;

  void touch(Allocation& memory, bool writes) { touches_[touched_++] = {&memory, writes}; }
  void read(const MemoryRange& range) { ranges_[reads_++].become(range); }
  void write(const MemoryRange& range, bool covers) {
    ranges_[most_ + writes_++].become(range);
    if (covers) ranges_[2 * most_ + covers_++].become(range);
  }

  std::span<const Touch> touched() const { return {touches_, touched_}; }
  // R, W and C.
  std::span<const MemoryRange> reads() const { return {ranges_, reads_}; }
  std::span<const MemoryRange> writes() const { return {ranges_ + most_, writes_}; }
  std::span<const MemoryRange> covers() const { return {ranges_ + 2 * most_, covers_}; }

 private:
  static constexpr std::size_t kFew = 12;
  void take_many();

  const std::size_t most_;
  std::size_t touched_ = 0, reads_ = 0, writes_ = 0, covers_ = 0;
  // Not set before it is used: launches would pay for that.
  union Room {
    Room() {}
    MemoryRange ranges[3 * kFew];
  } room_;
  union TouchRoom {
    TouchRoom() {}
    Touch touches[kFew];
  } touch_room_;
  MemoryRange* ranges_ = room_.ranges;
  Touch* touches_ = touch_room_.touches;
};

}  // namespace kiln::rt
