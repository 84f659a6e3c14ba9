#include "cuda/memory_pool.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cuda {
namespace {

constexpr std::uint64_t kGrain = 512;                      // of the driver
constexpr std::uint64_t kLarge = std::uint64_t{64} << 20;  // from here on in steps of kLargeGrain, below in eight steps a doubling
constexpr std::uint64_t kLargeGrain = std::uint64_t{2} << 20;

std::uint64_t round_up(std::uint64_t v, std::uint64_t to) { return (v + to - 1) / to * to; }

// Sizes that repeat, so that blocks fit again: at most an eighth is wasted.
std::uint64_t size_class(std::uint64_t bytes) {
  if (bytes >= kLarge) return round_up(bytes, kLargeGrain);
  std::uint64_t step = kGrain;
  while (step * 16 <= bytes) step *= 2;
  return round_up(bytes, step);
}

}  // namespace

MemoryPool::MemoryPool(Session& session, Queues& queues, std::uint64_t limit) : session_(session), queues_(queues) {
  std::size_t total = 0;
  if (session_.call().cuDeviceTotalMem(&total, session_.device()) == CUDA_SUCCESS) total_ = total;
  limit_ = limit != 0 ? limit : total_ / 4;
}

MemoryPool::~MemoryPool() {
  free_kept(0, true);
  let_go();
}

// A block that is free for anybody first, else the one of that size that was handed back first. Under the lock.
MemoryPool::Block MemoryPool::take_kept(std::uint64_t bytes) {
  const std::uint64_t most = bytes < kLarge ? bytes : bytes + bytes / 8;
  auto best = kept_.end();
  for (auto at = kept_.lower_bound(bytes); at != kept_.end() && at->first <= most; ++at) {
    if (best == kept_.end()) best = at;
    if (queues_.done(at->second->after)) {
      best = at;
      at->second->after.clear();
      break;
    }
  }
  if (best == kept_.end()) return nullptr;
  Block block = std::move(best->second);
  kept_.erase(best);
  pooled_ -= block->capacity;
  return block;
}

CUresult MemoryPool::ask_driver(std::uint64_t bytes, CUdeviceptr& address) {
  const Session::Current current(session_);
  return session_.call().cuMemAlloc(&address, bytes);
}

Result<MemoryPool::Block> MemoryPool::allocate(std::uint64_t bytes) {
  if (session_.poisoned()) return session_.lost(Phase::Allocate);
  let_go();
  const std::string size = std::to_string(bytes);
  if (total_ != 0 && bytes > total_) {
    Error::Data data;
    data.code = ErrorCode::BufferTooBig;
    data.message = "no buffer of " + size + " bytes: " + session_.name() + " has " + std::to_string(total_) + " in all";
    data.requested = bytes;
    data.limit = total_;
    return Error(std::move(data));
  }
  std::uint64_t capacity = size_class(bytes);
  {
    const std::lock_guard lock(mutex_);
    if (Block block = take_kept(capacity)) {
      block->bytes = bytes;
      used_ += block->capacity;
      return block;
    }
  }
  auto block = std::make_unique<rt::Storage>();  // first: what the driver gives must not be lost
  CUdeviceptr address = 0;
  CUresult result = ask_driver(capacity, address);
  std::uint64_t given_back = 0;
  if (result == CUDA_ERROR_OUT_OF_MEMORY) {
    given_back = free_kept(0, true);
    capacity = round_up(bytes, kGrain);
    result = ask_driver(capacity, address);
  }
  if (result != CUDA_SUCCESS) return no_memory(result, bytes, given_back);
  block->data = reinterpret_cast<void*>(address);
  block->bytes = bytes;
  block->capacity = capacity;
  const std::lock_guard lock(mutex_);
  used_ += capacity;
  return block;
}

Error MemoryPool::no_memory(CUresult result, std::uint64_t bytes, std::uint64_t given_back) {
  const std::string doing = "a buffer of " + std::to_string(bytes) + " bytes on " + session_.name();
  const Error error = session_.failed(result, Phase::Allocate, doing);
  if (error.code() != ErrorCode::OutOfMemory) return error;
  std::size_t free_bytes = 0, total = 0;
  {
    const Session::Current current(session_);
    session_.call().cuMemGetInfo(&free_bytes, &total);
  }
  Error::Data data = error.data();
  data.message += " (free: " + std::to_string(free_bytes) + " of " + std::to_string(total_) +
                  " bytes, in buffers of this process: " + std::to_string(used_bytes()) + ", pooled: " + std::to_string(pooled_bytes()) +
                  ", given back before the second attempt: " + std::to_string(given_back) + ")";
  data.requested = bytes;
  data.limit = free_bytes;
  return Error(std::move(data));
}

void MemoryPool::retire(std::unique_ptr<rt::Storage> storage) noexcept {
  if (storage->owner != nullptr) {
    leave(std::move(storage));
    let_go();
    return;
  }
  bool full = false;
  try {
    const std::lock_guard lock(mutex_);
    const std::uint64_t capacity = storage->capacity;
    used_ -= capacity;
    const auto place = kept_.emplace(capacity, nullptr);
    place->second = std::move(storage);
    pooled_ += capacity;
    full = pooled_ > limit_;
  } catch (const std::bad_alloc&) { return leave(std::move(storage)); }  // no memory to keep it
  if (full) free_kept(limit_, false);
}

void MemoryPool::leave(std::unique_ptr<rt::Storage> storage) noexcept {
  const std::lock_guard lock(mutex_);
  storage->next = leaving_;
  leaving_ = storage.release();
}

rt::After MemoryPool::open_tasks(std::uint64_t address, std::uint64_t bytes) const {
  rt::After open;
  const std::lock_guard lock(mutex_);
  for (const rt::Storage* s = leaving_; s != nullptr; s = s->next) {
    const auto begin = reinterpret_cast<std::uint64_t>(s->data);
    if (begin < address + bytes && address < begin + s->bytes) open.add(s->after);
  }
  return open;
}

void MemoryPool::free_block(const rt::Storage& block) {
  const Session::Current current(session_);
  session_.call().cuMemFree(reinterpret_cast<CUdeviceptr>(block.data));
}

// Frees kept blocks, the largest first, until no more than `keep` bytes of them are left; those in use only with `wait`.
std::uint64_t MemoryPool::free_kept(std::uint64_t keep, bool wait) {
  Blocks taken;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = kept_.end(); at != kept_.begin() && pooled_ > keep;) {
      --at;
      if (!wait && !queues_.done(at->second->after)) continue;
      pooled_ -= at->first;
      const auto node = at++;
      taken.insert(kept_.extract(node));
    }
  }
  std::uint64_t bytes = 0;
  for (const auto& [capacity, block] : taken) {
    block->after.for_each([&](rt::Event e) { queues_.wait(e); });
    free_block(*block);
    bytes += capacity;
  }
  return bytes;
}

// Of memory whose tasks are over.
void MemoryPool::let_go() noexcept {
  rt::Storage* over = nullptr;
  {
    const std::lock_guard lock(mutex_);
    for (rt::Storage** at = &leaving_; *at != nullptr;) {
      rt::Storage* storage = *at;
      if (queues_.done(storage->after)) {
        *at = storage->next;
        storage->next = over;
        over = storage;
      } else {
        at = &storage->next;
      }
    }
  }
  while (over != nullptr) {  // without the lock: an owner may do what it likes
    const std::unique_ptr<rt::Storage> storage(std::exchange(over, over->next));
    if (storage->owner == nullptr) free_block(*storage);
  }
}

std::uint64_t MemoryPool::pooled_bytes() const {
  const std::lock_guard lock(mutex_);
  return pooled_;
}
std::uint64_t MemoryPool::used_bytes() const {
  const std::lock_guard lock(mutex_);
  return used_;
}

}  // namespace kiln::cuda
