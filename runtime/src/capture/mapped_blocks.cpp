#include "src/capture/mapped_blocks.h"

#include <bit>
#include <new>

namespace kiln::rt {

MappedBlock::~MappedBlock() {
  if (pool_ != nullptr) pool_->give_back(memory_);
}

unsigned MappedBlocks::class_of(std::uint64_t bytes) {
  const auto bits = static_cast<unsigned>(std::bit_width(bytes - 1));
  return bits <= kSmallest ? 0 : bits - kSmallest;
}

MappedBlocks::~MappedBlocks() {
  for (Free* at : free_) {
    while (at != nullptr) {
      const Device::Mapped memory = at->memory;
      at = at->next;
      device_.unmap(memory);
    }
  }
}

// Those that are too large to be kept for the next one who may want them.
MappedBlocks::Free* MappedBlocks::take_large() {
  Free* all = nullptr;
  for (unsigned c = class_of(kKept) + 1; c < kClasses; ++c) {
    while (Free* const one = free_[c]) {
      free_[c] = one->next;
      one->next = all;
      all = one;
    }
  }
  return all;
}

Result<MappedBlock> MappedBlocks::take(std::uint64_t bytes) {
  const unsigned c = class_of(bytes);
  if (c >= kClasses) return Error(ErrorCode::OutOfMemory, "a graph has no room for " + std::to_string(bytes) + " bytes from the host");
  Free* large = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (Free* const one = free_[c]) {
      free_[c] = one->next;
      return MappedBlock(*this, one->memory);
    }
    large = take_large();
  }
  while (large != nullptr) {
    const Device::Mapped memory = large->memory;
    large = large->next;
    device_.unmap(memory);
  }
  auto made = device_.map(std::uint64_t{1} << (c + kSmallest));
  if (!made.has_value()) return made.error();
  return MappedBlock(*this, *made);
}

void MappedBlocks::give_back(const Device::Mapped& memory) noexcept {
  Free* const one = new (memory.host) Free{memory, nullptr};
  const std::lock_guard lock(mutex_);
  Free*& list = free_[class_of(memory.bytes)];
  one->next = list;
  list = one;
}

}  // namespace kiln::rt
