#include "src/memory/memory_capture.h"

#include <utility>

#include "src/make_error.h"

namespace kiln::rt {

MemoryCapture::~MemoryCapture() {
  end();
  release({});
}

// Under the lock.
Result<void> MemoryCapture::open() {
  StreamAccount& account = manager_.account_of(stream_);
  if (account.capture != nullptr || state_ != State::Closed) {
    return make_error(ErrorCode::Validation, "CaptureOpen", "a graph is being captured on the stream; end that first");
  }
  account_ = &account;
  account.capture = this;
  ++manager_.windows_;
  return {};
}

Result<void> MemoryCapture::prime() {
  const std::lock_guard lock(manager_.mutex_);
  if (auto ok = open(); !ok.has_value()) return ok;
  state_ = State::Priming;
  return {};
}

Result<void> MemoryCapture::begin() {
  const std::lock_guard lock(manager_.mutex_);
  if (state_ == State::Recording) return {};
  if (state_ == State::Closed) {
    if (auto ok = open(); !ok.has_value()) return ok;
  }
  free_primed();
  state_ = State::Recording;
  ++manager_.recording_;
  return {};
}

void MemoryCapture::end() noexcept {
  Storage* gone = nullptr;
  {
    const std::lock_guard lock(manager_.mutex_);
    if (state_ == State::Closed) return;
    free_primed();
    if (state_ == State::Recording) --manager_.recording_;
    --manager_.windows_;
    state_ = State::Closed;
    account_->capture = nullptr;
    account_ = nullptr;
    gone = manager_.flush_if_due();
  }
  manager_.send(gone);
}

void MemoryCapture::use(Storage& storage) {
  const std::lock_guard lock(manager_.mutex_);
  reserve_pin();
  if (storage.slice == nullptr) {  // of somebody else's memory
    PoolSlice& slice = manager_.nodes_.take();
    slice.user = &storage;
    storage.slice = &slice;
  }
  pin(*storage.slice);
}

void MemoryCapture::pin(PoolSlice& slice) noexcept {
  if (slice.pinned_by == this) return;
  slice.pinned_by = this;
  ++slice.pins;
  pins_.push_back(&slice);
}

bool MemoryCapture::keep(PoolSlice& slice) noexcept {
  slice.before = nullptr;
  if (state_ == State::Priming) {
    ++slice.pins;  // or a graph that has it, too, would free it under this list
    slice.after_it = std::exchange(primed_, &slice);
    return true;
  }
  if (slice.pinned_by == this) return true;
  slice.pinned_by = this;
  ++slice.pins;
  ++freed_count_;
  slice.after_it = std::exchange(freed_, &slice);
  return true;
}

void MemoryCapture::free_primed() noexcept {
  while (primed_ != nullptr) {
    PoolSlice& slice = *std::exchange(primed_, primed_->after_it);
    slice.after_it = nullptr;
    if (--slice.pins != 0) continue;  // another graph's
    const After after = slice.after;
    manager_.free_slice(slice, after);
  }
}

void MemoryCapture::unpin(PoolSlice& slice, const After& after, Storage*& others) noexcept {
  if (slice.pinned_by == this) slice.pinned_by = nullptr;
  --slice.pins;
  if (slice.state != PoolSlice::State::Held) return;  // its owner frees it
  slice.after.add(after);
  if (slice.pins != 0) return;
  if (slice.page == nullptr) {
    slice.user->after = slice.after;
    slice.user->slice = nullptr;
    slice.user->next = std::exchange(others, slice.user);
    manager_.nodes_.give_back(slice);
    return;
  }
  const After all = slice.after;
  manager_.free_slice(slice, all);
}

void MemoryCapture::release(const After& after) noexcept {
  Storage *gone = nullptr, *others = nullptr;
  {
    const std::lock_guard lock(manager_.mutex_);
    while (freed_ != nullptr) {
      PoolSlice& slice = *std::exchange(freed_, freed_->after_it);
      slice.after_it = nullptr;
      unpin(slice, after, others);
    }
    for (PoolSlice* slice : pins_) unpin(*slice, after, others);
    pins_.clear();
    freed_count_ = 0;
    gone = manager_.flush_if_due();
  }
  manager_.send(gone);
  while (others != nullptr) {
    std::unique_ptr<Storage> storage(std::exchange(others, others->next));
    storage->next = nullptr;
    const After over = storage->after;
    manager_.device_.retire(std::move(storage), over);
  }
}

std::size_t MemoryCapture::pinned() const {
  const std::lock_guard lock(manager_.mutex_);
  return pins_.size() + freed_count_;
}

}  // namespace kiln::rt
