// Host memory that graphs' operations write or read: fault records, and bytes that the host gave. Kept when it is given back, since giving
// such memory back to a driver may wait for the device.
#pragma once
#include <array>
#include <cstddef>
#include <mutex>
#include <utility>

#include "src/device.h"

namespace kiln::rt {

class MappedBlocks;

// A block, given back when it goes away. Not cleared.
class MappedBlock {
 public:
  MappedBlock() = default;
  MappedBlock(MappedBlocks& pool, const Device::Mapped& memory) : pool_(&pool), memory_(memory) {}
  MappedBlock(MappedBlock&& o) noexcept : pool_(std::exchange(o.pool_, nullptr)), memory_(o.memory_) {}
  MappedBlock& operator=(MappedBlock&& o) noexcept {
    std::swap(pool_, o.pool_);
    std::swap(memory_, o.memory_);
    return *this;
  }
  ~MappedBlock();
  std::byte* host() const { return memory_.host; }
  std::uint64_t address() const { return memory_.address; }

 private:
  MappedBlocks* pool_ = nullptr;
  Device::Mapped memory_;
};

// Thread-safe; its lock is taken last and held for a moment. Giving back neither waits nor allocates.
class MappedBlocks {
 public:
  explicit MappedBlocks(Device& device) : device_(device) {}
  ~MappedBlocks();  // nothing uses the memory any more
  MappedBlocks(const MappedBlocks&) = delete;
  MappedBlocks& operator=(const MappedBlocks&) = delete;

  // At least `bytes` > 0, aligned to 64. May ask the device and wait for it: call it without a lock. Errors: OutOfMemory, lost device.
  Result<MappedBlock> take(std::uint64_t bytes);
  void give_back(const Device::Mapped& memory) noexcept;
  // The device is another process's: its memory is not given back.
  void forget() noexcept { free_ = {}; }

 private:
  static constexpr unsigned kSmallest = 12, kClasses = 48;  // powers of two, from 4 KiB on
  static constexpr std::uint64_t kKept = std::uint64_t{1} << 20;
  // In the free memory itself.
  struct Free {
    Device::Mapped memory;
    Free* next;
  };
  static unsigned class_of(std::uint64_t bytes);
  Free* take_large();

  Device& device_;
  std::mutex mutex_;
  std::array<Free*, kClasses> free_{};
};

}  // namespace kiln::rt
