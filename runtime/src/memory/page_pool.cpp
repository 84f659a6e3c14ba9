#include "src/memory/page_pool.h"

#include <algorithm>
#include <utility>

namespace kiln::rt {
namespace {

constexpr std::uint64_t kLarge = std::uint64_t{64} << 20;  // from here on in steps of kLargeGrain, below in eight steps a doubling
constexpr std::uint64_t kLargeGrain = std::uint64_t{2} << 20;

// Sizes that repeat, so that pages fit again: at most an eighth is wasted.
std::uint64_t size_class(std::uint64_t bytes, std::uint64_t alignment) {
  if (bytes >= kLarge) return round_up_to(bytes, kLargeGrain);
  std::uint64_t step = 1;
  while (step * 16 <= bytes) step *= 2;
  return round_up_to(round_up_to(bytes, step), alignment);
}

}  // namespace

PagePool::PagePool(std::uint32_t id, const PoolConfig& config, std::uint64_t alignment, std::uint64_t device_bytes, SliceNodes& nodes,
                   const EventsOver& over)
    : id_(id), config_(config), alignment_(alignment), device_bytes_(device_bytes), nodes_(nodes), over_(over) {
  const bool sized = kind() == PoolKind::Sliced || kind() == PoolKind::Exclusive;
  if (sized && config_.page_bytes != kAnySize) config_.page_bytes = round_up_to(config_.page_bytes, alignment_);
  if (config_.cap != 0 && sized) config_.page_bytes = std::min(config_.page_bytes, config_.cap / alignment_ * alignment_);
  largest_ = sized ? config_.page_bytes : kAnySize;
  if (kind() == PoolKind::Sliced && config_.max_slice != 0) largest_ = std::min(largest_, config_.max_slice);
}

PagePool::~PagePool() = default;

std::uint64_t PagePool::page_for(std::uint64_t bytes, bool tight) const {
  if (kind() == PoolKind::Sliced) return config_.page_bytes;
  if (kind() != PoolKind::Exclusive || tight) return bytes;
  std::uint64_t page = std::min(size_class(bytes, alignment_), config_.page_bytes);
  if (device_bytes_ != 0) page = std::min(page, std::max(bytes, device_bytes_ / alignment_ * alignment_));
  return page;
}

// The largest slice that is not too good for it.
std::uint64_t PagePool::most(std::uint64_t bytes) const {
  if (kind() == PoolKind::Sliced) return kAnySize;
  if (kind() == PoolKind::Persistent) return bytes;
  const std::uint64_t page = page_for(bytes, false);
  return bytes < kLarge ? page : page + page / 8;
}

PoolSlice* PagePool::find(std::uint64_t bytes, std::uint32_t queue, Whose whose) {
  settle(2);
  const std::uint64_t most_bytes = most(bytes), near = std::min(most_bytes, bytes + bytes / 8);
  const auto any = [](const PoolSlice&) { return true; };
  const auto ours = [&](const PoolSlice& s) { return over_.but_for(queue, s.after); };
  if (PoolSlice* s = ready_.find(bytes, near, any)) return s;
  if (!pending_.empty()) {
    if (PoolSlice* s = pending_.find(bytes, near, ours)) return s;
  }
  if (PoolSlice* s = ready_.find(bytes, most_bytes, any, 1000)) return s;
  if (pending_.empty()) return nullptr;
  if (PoolSlice* s = pending_.find(bytes, most_bytes, ours)) return s;
  return whose == Whose::Anybodys ? pending_.find(bytes, most_bytes, any, 1000) : nullptr;
}

PoolSlice& PagePool::cut(PoolSlice& slice, std::uint64_t bytes, After& after) {
  const bool pending = slice.state == PoolSlice::State::Pending;
  PoolSlice* const older = slice.older;
  take_out(slice);
  if (pending && !over_(slice.after)) after = slice.after;
  if (kind() == PoolKind::Sliced && slice.bytes > bytes) {
    PoolSlice& rest = nodes_.take();
    rest.page = slice.page;
    rest.offset = slice.offset + bytes;
    rest.bytes = slice.bytes - bytes;
    rest.below = &slice;
    rest.above = slice.above;
    if (rest.above != nullptr) rest.above->below = &rest;
    slice.above = &rest;
    slice.bytes = bytes;
    if (pending && !after.empty()) {
      rest.after = slice.after;
      rest.state = PoolSlice::State::Pending;
      rest.older = older;
      rest.newer = older != nullptr ? older->newer : oldest_;
      (rest.older != nullptr ? rest.older->newer : oldest_) = &rest;
      (rest.newer != nullptr ? rest.newer->older : newest_) = &rest;
      pending_.insert(rest);
    } else {
      slice.state = PoolSlice::State::Used;  // not to be merged with
      make_ready(rest);
    }
  }
  slice.state = PoolSlice::State::Used;
  slice.after.clear();
  return slice;
}

void PagePool::free(PoolSlice& slice, const After& after) noexcept {
  if (over_(after)) return make_ready(slice);
  slice.after = after;
  slice.state = PoolSlice::State::Pending;
  link_pending(slice);
  pending_.insert(slice);
}

void PagePool::make_ready(PoolSlice& given) noexcept {
  PoolSlice* slice = &given;
  slice->after.clear();
  if (PoolSlice* above = slice->above; above != nullptr && above->state == PoolSlice::State::Ready) {
    take_out(*above);
    slice->bytes += above->bytes;
    slice->above = above->above;
    if (slice->above != nullptr) slice->above->below = slice;
    nodes_.give_back(*above);
  }
  if (PoolSlice* below = slice->below; below != nullptr && below->state == PoolSlice::State::Ready) {
    take_out(*below);
    below->bytes += slice->bytes;
    below->above = slice->above;
    if (below->above != nullptr) below->above->below = below;
    nodes_.give_back(*slice);
    slice = below;
  }
  slice->state = PoolSlice::State::Ready;
  ready_.insert(*slice);
  if (slice->page->empty()) link_empty(*slice->page);
}

void PagePool::take_out(PoolSlice& slice) noexcept {
  if (slice.state == PoolSlice::State::Pending) {
    pending_.remove(slice);
    unlink_pending(slice);
    return;
  }
  if (slice.page->empty()) unlink_empty(*slice.page);
  ready_.remove(slice);
}

void PagePool::link_pending(PoolSlice& slice) noexcept {
  slice.older = newest_;
  slice.newer = nullptr;
  (newest_ != nullptr ? newest_->newer : oldest_) = &slice;
  newest_ = &slice;
}

void PagePool::unlink_pending(PoolSlice& slice) noexcept {
  (slice.older != nullptr ? slice.older->newer : oldest_) = slice.newer;
  (slice.newer != nullptr ? slice.newer->older : newest_) = slice.older;
  slice.older = slice.newer = nullptr;
}

void PagePool::settle(unsigned count) noexcept {
  for (PoolSlice* s = oldest_; s != nullptr && count != 0; --count) {
    PoolSlice* next = s->newer;
    if (over_(s->after)) {
      pending_.remove(*s);
      unlink_pending(*s);
      make_ready(*s);
    }
    s = next;
  }
}

// --- pages ---------------------------------------------------------------------------------------------------------------------

void PagePool::link_empty(PoolPage& page) noexcept {
  page.empty_since = allocations_;
  page.empty_before = empty_last_;
  page.empty_behind = nullptr;
  (empty_last_ != nullptr ? empty_last_->empty_behind : empty_first_) = &page;
  empty_last_ = &page;
  if (page.block != nullptr) empty_bytes_ += page.bytes;
}

void PagePool::unlink_empty(PoolPage& page) noexcept {
  (page.empty_before != nullptr ? page.empty_before->empty_behind : empty_first_) = page.empty_behind;
  (page.empty_behind != nullptr ? page.empty_behind->empty_before : empty_last_) = page.empty_before;
  page.empty_before = page.empty_behind = nullptr;
  if (page.block != nullptr) empty_bytes_ -= page.bytes;
}

PoolPage& PagePool::add(std::unique_ptr<PoolPage> owned) {
  PoolPage& page = *owned;
  PoolSlice& all = nodes_.take();
  owned.release();
  page.pool = this;
  page.first = &all;
  page.behind = pages_;
  if (pages_ != nullptr) pages_->before = &page;
  pages_ = &page;
  all.page = &page;
  all.bytes = page.bytes;
  pages_peak_ = std::max(pages_peak_, ++page_count_);
  if (page.block != nullptr) reserved_ += page.bytes;
  else ++unmapped_;
  make_ready(all);
  return page;
}

void PagePool::unlink_page(PoolPage& page) noexcept {
  (page.before != nullptr ? page.before->behind : pages_) = page.behind;
  if (page.behind != nullptr) page.behind->before = page.before;
  page.before = page.behind = nullptr;
  --page_count_;
  taken_ -= page.bytes;
  if (page.block != nullptr) reserved_ -= page.bytes;
  else --unmapped_;
}

std::unique_ptr<PoolPage> PagePool::remove(PoolPage& page) noexcept {
  take_out(*page.first);
  return remove_with(*page.first);
}

std::unique_ptr<PoolPage> PagePool::remove_with(PoolSlice& whole) noexcept {
  PoolPage& page = *whole.page;
  unlink_page(page);
  nodes_.give_back(whole);
  page.first = nullptr;
  return std::unique_ptr<PoolPage>(&page);
}

void PagePool::mapped(PoolPage& page) noexcept {
  --unmapped_;
  reserved_ += page.bytes;
  if (page.empty()) empty_bytes_ += page.bytes;
}

}  // namespace kiln::rt
