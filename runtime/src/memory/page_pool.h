// One pool of a layout: its pages, the slices in them, and which slice an allocation gets.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>

#include "kiln/runtime/memory.h"
#include "src/memory/slices.h"

namespace kiln::rt {

inline std::uint64_t round_up_to(std::uint64_t bytes, std::uint64_t step) {
  const std::uint64_t rest = bytes % step;
  if (rest == 0) return bytes;
  return bytes > kAnySize - (step - rest) ? kAnySize / step * step : bytes + (step - rest);
}

// Tells what is over. Asks no driver.
class EventsOver {
 public:
  explicit EventsOver(const Device& device) : device_(device) {}
  bool operator()(Event e) const { return device_.over(e); }
  bool operator()(const After& after) const {
    bool all = true;
    after.for_each([&](Event e) { all = all && device_.over(e); });
    return all;
  }
  // Whether only that queue, which runs in order, has something to wait for.
  bool but_for(std::uint32_t queue, const After& after) const {
    bool all = true;
    after.for_each([&](Event e) { all = all && (e.queue == queue || device_.over(e)); });
    return all;
  }

 private:
  const Device& device_;
};

// Not synchronised; touches no device memory and asks the device for none. Sizes that it is asked for are multiples of the alignment.
class PagePool {
 public:
  // A cap below the size of a page makes the pages as small as the cap; below the alignment nothing fits.
  PagePool(std::uint32_t id, const PoolConfig& config, std::uint64_t alignment, std::uint64_t device_bytes, SliceNodes& nodes,
           const EventsOver& over);
  ~PagePool();  // every page is out
  PagePool(const PagePool&) = delete;

  std::uint32_t id() const { return id_; }
  PoolKind kind() const { return config_.kind; }
  const PoolConfig& config() const { return config_; }
  bool outdated() const { return outdated_; }
  void become_outdated() { outdated_ = true; }
  bool takes(std::uint64_t bytes) const { return bytes <= largest_; }
  // The page to take for it. `tight`: no more than needs be.
  std::uint64_t page_for(std::uint64_t bytes, bool tight) const;
  bool has_room(std::uint64_t page_bytes) const { return config_.cap == 0 || page_bytes <= config_.cap - std::min(config_.cap, taken_); }

  // Whose slices may be taken: those that are ready, or that come after nothing but that queue's work, which the taker comes after anyway;
  // or those that anybody is still at work on, too.
  enum class Whose { Nobodys, Anybodys };
  // A free slice of at least that size that may be taken now; null: none.
  PoolSlice* find(std::uint64_t bytes, std::uint32_t queue, Whose whose);
  // Cuts `bytes` from its beginning, which are given out. Takes a node at most, which must be reserved. `after`: what comes before its use.
  PoolSlice& cut(PoolSlice& slice, std::uint64_t bytes, After& after);
  // A slice that was given out is free.
  void free(PoolSlice& slice, const After& after) noexcept;

  // Room for a page that is about to be taken counts against the cap from here on, until it is added or not.
  void expect(std::uint64_t page_bytes) { taken_ += page_bytes; }
  void unexpect(std::uint64_t page_bytes) { taken_ -= page_bytes; }
  // A page that was expected; its one slice is ready. Takes a node, which must be reserved.
  PoolPage& add(std::unique_ptr<PoolPage> page);
  // An empty page leaves.
  std::unique_ptr<PoolPage> remove(PoolPage& page) noexcept;
  // A page of which one slice is free, or just given back: it leaves whatever the slice's events.
  std::unique_ptr<PoolPage> remove_with(PoolSlice& whole) noexcept;

  // Looks at the first `count` of those that were freed longest ago; those whose work is over are ready.
  void settle(unsigned count) noexcept;
  PoolSlice* oldest_pending() const { return oldest_; }
  void for_each_pending(auto&& f) const {
    for (PoolSlice* s = oldest_; s != nullptr; s = s->newer) f(*s);
  }
  void for_each_page(auto&& f) const {
    for (PoolPage* page = pages_; page != nullptr;) {
      PoolPage* next = page->behind;
      f(*page);
      page = next;
    }
  }
  PoolPage* longest_empty() const { return empty_first_; }
  std::uint64_t empty_bytes() const { return empty_bytes_; }  // that were taken from the device

  void note_allocation() { ++allocations_; }
  // The page that has been empty for too long, if one has.
  PoolPage* idle_page() const {
    if (config_.idle == 0 || empty_first_ == nullptr || allocations_ - empty_first_->empty_since <= config_.idle) return nullptr;
    return empty_first_;
  }
  // Memory was taken for a page that had none.
  void mapped(PoolPage& page) noexcept;

  std::uint64_t pages() const { return page_count_; }
  std::uint64_t pages_peak() const { return pages_peak_; }
  std::uint64_t pages_unmapped() const { return unmapped_; }
  std::uint64_t reserved() const { return reserved_; }  // bytes of pages that are mapped

 private:
  void make_ready(PoolSlice& slice) noexcept;
  void take_out(PoolSlice& slice) noexcept;  // of the index that it is in
  void link_pending(PoolSlice& slice) noexcept;
  void unlink_pending(PoolSlice& slice) noexcept;
  void link_empty(PoolPage& page) noexcept;
  void unlink_empty(PoolPage& page) noexcept;
  void unlink_page(PoolPage& page) noexcept;
  std::uint64_t most(std::uint64_t bytes) const;

  const std::uint32_t id_;
  PoolConfig config_;
  const std::uint64_t alignment_, device_bytes_;
  std::uint64_t largest_ = 0;  // allocation
  bool outdated_ = false;
  SliceNodes& nodes_;
  const EventsOver& over_;
  SizeIndex ready_, pending_;
  PoolSlice *oldest_ = nullptr, *newest_ = nullptr;
  PoolPage *pages_ = nullptr, *empty_first_ = nullptr, *empty_last_ = nullptr;
  std::uint64_t page_count_ = 0, pages_peak_ = 0, unmapped_ = 0, reserved_ = 0, taken_ = 0, empty_bytes_ = 0, allocations_ = 0;
};

}  // namespace kiln::rt
