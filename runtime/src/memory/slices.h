// The pieces of a pool's pages, and where free ones are found by size. No locks and no device: the manager has both.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <vector>

#include "src/device.h"

namespace kiln::rt {

class MemoryCapture;
class PagePool;
struct PoolPage;
struct StreamAccount;

// A piece of a page: given out, or free.
struct PoolSlice {
  enum class State : std::uint8_t {
    Used,     // given out
    Ready,    // free, and nobody is at work on it; never beside another one
    Pending,  // free, and whoever gets it comes after `after`
    Held      // free, but a graph or the warm-up of one still wants it
  };
  PoolPage* page = nullptr;  // null: of memory that somebody else allocated
  std::uint64_t offset = 0, bytes = 0;
  std::uint64_t asked = 0;  // of it, while it is given out
  State state = State::Used;
  std::uint32_t pins = 0;                            // captures that use it
  PoolSlice *below = nullptr, *above = nullptr;      // its neighbours in the page
  PoolSlice *before = nullptr, *after_it = nullptr;  // in the list of its size, or of what is held
  PoolSlice *older = nullptr, *newer = nullptr;      // Pending: in the order of freeing
  const MemoryCapture* pinned_by = nullptr;          // the last capture that pinned it
  StreamAccount* account = nullptr;                  // while it is given out
  Storage* user = nullptr;                           // while it is given out; of memory of somebody else, while held, too
  After after;                                       // Pending, Held
};

struct PoolPage {
  PagePool* pool = nullptr;
  std::unique_ptr<Storage> block;  // the device's; null: no memory was taken for it yet
  std::uint64_t bytes = 0;
  PoolSlice* first = nullptr;
  PoolPage *before = nullptr, *behind = nullptr;              // of the pool
  PoolPage *empty_before = nullptr, *empty_behind = nullptr;  // of its empty ones, the longest empty first
  std::uint64_t empty_since = 0;                              // in allocations of the pool

  std::byte* data() const { return block == nullptr ? nullptr : static_cast<std::byte*>(block->data); }
  bool empty() const { return first->state == PoolSlice::State::Ready && first->bytes == bytes; }
};

// Slices that nobody uses at the moment, so that freeing needs no memory.
class SliceNodes {
 public:
  // Makes sure of `count` nodes. Throws std::bad_alloc.
  void reserve(std::size_t count) {
    while (free_count_ < count) grow();
  }
  PoolSlice& take() {
    if (free_ == nullptr) grow();
    PoolSlice& node = *free_;
    free_ = node.after_it;
    --free_count_;
    PoolSlice fresh;  // not zeroed first, as PoolSlice() is
    node = fresh;
    return node;
  }
  void give_back(PoolSlice& node) noexcept {
    node.after_it = free_;
    free_ = &node;
    ++free_count_;
  }

 private:
  static constexpr std::size_t kChunk = 16;
  void grow() {
    chunks_.reserve(chunks_.size() + 1);
    chunks_.push_back(std::make_unique<PoolSlice[]>(kChunk));
    for (std::size_t i = 0; i < kChunk; ++i) give_back(chunks_.back()[i]);
  }
  std::vector<std::unique_ptr<PoolSlice[]>> chunks_;
  PoolSlice* free_ = nullptr;
  std::size_t free_count_ = 0;
};

// Free slices by size: eight lists for each doubling, the last one that came first.
class SizeIndex {
 public:
  bool empty() const { return levels_ == 0; }
  void insert(PoolSlice& s) noexcept {
    const unsigned bin = bin_of(s.bytes);
    s.before = nullptr;
    s.after_it = heads_[bin];
    if (s.after_it != nullptr) s.after_it->before = &s;
    heads_[bin] = &s;
    levels_ |= std::uint64_t{1} << (bin >> 3);
    bins_[bin >> 3] |= static_cast<std::uint8_t>(1u << (bin & 7));
  }
  void remove(PoolSlice& s) noexcept {
    const unsigned bin = bin_of(s.bytes);
    (s.before != nullptr ? s.before->after_it : heads_[bin]) = s.after_it;
    if (s.after_it != nullptr) s.after_it->before = s.before;
    s.before = s.after_it = nullptr;
    if (heads_[bin] != nullptr) return;
    bins_[bin >> 3] &= static_cast<std::uint8_t>(~(1u << (bin & 7)));
    if (bins_[bin >> 3] == 0) levels_ &= ~(std::uint64_t{1} << (bin >> 3));
  }
  // A slice of `bytes` to `most` bytes that `usable` takes: about the smallest there is. Looks at `tries` of them.
  template <class F>
  PoolSlice* find(std::uint64_t bytes, std::uint64_t most, F&& usable, unsigned tries = 24) const {
    for (unsigned bin = next(bin_of(bytes)); bin < kBins; bin = next(bin + 1)) {
      for (PoolSlice* s = heads_[bin]; s != nullptr; s = s->after_it) {
        if (s->bytes >= bytes && s->bytes <= most && usable(*s)) return s;
        if (--tries == 0) return nullptr;
      }
      if (bin + 1 >= kBins || least(bin + 1) > most) return nullptr;
    }
    return nullptr;
  }

 private:
  static constexpr unsigned kBins = 64 * 8;
  static unsigned bin_of(std::uint64_t bytes) {
    const auto level = static_cast<unsigned>(std::bit_width(bytes)) - 1;  // bytes > 0
    const auto eighth = static_cast<unsigned>(level >= 3 ? bytes >> (level - 3) : bytes << (3 - level)) & 7;
    return level * 8 + eighth;
  }
  static std::uint64_t least(unsigned bin) {
    const unsigned level = bin >> 3;
    const std::uint64_t eighths = 8 + (bin & 7);
    return level >= 3 ? eighths << (level - 3) : eighths >> (3 - level);
  }
  // The first bin from `bin` on that has a slice; kBins: none.
  unsigned next(unsigned bin) const {
    if (bin >= kBins) return kBins;
    unsigned level = bin >> 3;
    const unsigned here = bins_[level] & (0xffu << (bin & 7));
    if (here != 0) return level * 8 + static_cast<unsigned>(std::countr_zero(here));
    if (++level >= 64) return kBins;
    const std::uint64_t rest = levels_ & (~std::uint64_t{0} << level);
    if (rest == 0) return kBins;
    level = static_cast<unsigned>(std::countr_zero(rest));
    return level * 8 + static_cast<unsigned>(std::countr_zero(unsigned{bins_[level]}));
  }

  std::uint64_t levels_ = 0;
  std::array<std::uint8_t, 64> bins_{};
  std::array<PoolSlice*, kBins> heads_{};
};

}  // namespace kiln::rt
