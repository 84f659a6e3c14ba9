// Memory on its way back to the device: kept back until there is enough of it to be worth the device's calls, and until those who use it
// are through.
#pragma once
#include <cstdint>
#include <memory>
#include <utility>

#include "src/device.h"

namespace kiln::rt {

// Not synchronised. Needs no memory: blocks are linked by Storage::next, and each has its events in Storage::after.
class DropQueue {
 public:
  // It is time to flush at so many blocks or bytes, whichever is first.
  struct Limits {
    std::uint64_t buffers = 64, bytes = std::uint64_t{64} << 20;
  };
  explicit DropQueue(const Limits& limits) : limits_(limits) {}
  DropQueue() = default;

  void push(std::unique_ptr<Storage> block) noexcept {
    ++queued_.buffers;
    queued_.bytes += block->bytes;
    queued_.fence.add(block->after);
    block->next = queued_.first;
    queued_.first = block.release();
  }
  // Whether it is time to flush.
  bool due() const { return queued_.buffers >= limits_.buffers || queued_.bytes >= limits_.bytes; }
  std::uint64_t buffers() const { return queued_.buffers; }            // since the last flush
  std::uint64_t bytes() const { return queued_.bytes + sent_.bytes; }  // in all
  bool fenced() const { return sent_.first != nullptr; }
  bool empty() const { return queued_.first == nullptr && !fenced(); }
  After events() const {
    After all = queued_.fence;
    all.add(sent_.fence);
    return all;
  }

  // Puts a fence behind what is queued: the events of its blocks. The n-th flush asks `passed` for the fence of the one before, the first
  // one for none. Gives the blocks that are behind a fence that was passed, linked; where it was not, both wait for the next one together.
  template <class F>
  Storage* flush(F&& passed) noexcept {
    Storage* free = settle(passed);
    if (sent_.first == nullptr) {
      sent_ = std::exchange(queued_, Batch());
      return free;
    }
    Storage** end = &sent_.first;
    while (*end != nullptr) end = &(*end)->next;
    *end = queued_.first;
    sent_.bytes += queued_.bytes;
    sent_.buffers += queued_.buffers;
    sent_.fence.add(queued_.fence);
    queued_ = Batch();
    return free;
  }
  // The blocks of the last flush, if `passed` says so of its fence.
  template <class F>
  Storage* settle(F&& passed) noexcept {
    if (sent_.first == nullptr || !passed(std::as_const(sent_.fence))) return nullptr;
    return std::exchange(sent_, Batch()).first;
  }

 private:
  struct Batch {
    Storage* first = nullptr;
    std::uint64_t buffers = 0, bytes = 0;
    After fence;
  };
  Limits limits_;
  Batch queued_, sent_;
};

}  // namespace kiln::rt
