#include "cuda/staging_pool.h"

#include <algorithm>
#include <bit>
#include <string>

namespace kiln::cuda {
namespace {

constexpr std::uint64_t kSmallest = std::uint64_t{64} << 10;

}  // namespace

StagingPool::~StagingPool() {
  const Session::Current current(session_);
  for (const Block& block : blocks_) session_.call().cuMemFreeHost(block.data);
}

// Of that size, with its copy over. Under the lock.
StagingPool::Block* StagingPool::find_free(std::uint64_t bytes) {
  for (Block& block : blocks_)
    if (!block.held && block.bytes == bytes && queues_.done(block.event)) return &block;
  return nullptr;
}

// Takes blocks that are over out of the pool until `size` more bytes fit. Under the lock; the caller frees them without it.
std::vector<std::byte*> StagingPool::make_room(std::uint64_t size) {
  std::vector<std::byte*> dropped;
  std::erase_if(blocks_, [&](const Block& block) {
    const bool drop = !block.held && bytes_ + size > kMostBytes && queues_.done(block.event);
    if (drop) {
      dropped.push_back(block.data);
      bytes_ -= block.bytes;
    }
    return drop;
  });
  return dropped;
}

Result<rt::Staging> StagingPool::take(std::uint64_t bytes) {
  const std::uint64_t size = std::max(kSmallest, std::bit_ceil(bytes));
  for (;;) {
    if (session_.poisoned()) return session_.lost(Phase::Transfer);
    rt::Event pending;
    std::vector<std::byte*> dropped;
    {
      const std::lock_guard lock(mutex_);
      if (Block* block = find_free(size)) {
        block->held = true;
        return rt::Staging(block->data, this, &release);
      }
      // Room is made from blocks of other sizes, else the first copy under way is waited for. Where all are held by threads at work, a
      // block too many is the lesser evil.
      if (bytes_ + size > kMostBytes) dropped = make_room(size);
      for (const Block& block : blocks_)
        if (bytes_ + size > kMostBytes && !block.held && pending.position == 0 && queues_.may_wait(rt::After(block.event)))
          pending = block.event;
      if (pending.position == 0) bytes_ += size;  // promised to this thread
    }
    // Without the lock: pinning and unpinning may wait for the device.
    for (std::byte* data : dropped) {
      const Session::Current current(session_);
      session_.call().cuMemFreeHost(data);
    }
    if (pending.position == 0) return pin(bytes, size);
    queues_.wait(pending);
  }
}

// A new block of `size` bytes, which bytes_ counts already.
Result<rt::Staging> StagingPool::pin(std::uint64_t bytes, std::uint64_t size) {
  void* data = nullptr;
  CUresult r = CUDA_SUCCESS;
  {
    const Session::Current current(session_);
    r = session_.call().cuMemHostAlloc(&data, size, CU_MEMHOSTALLOC_PORTABLE);
  }
  const std::lock_guard lock(mutex_);
  if (r != CUDA_SUCCESS) {
    bytes_ -= size;
    return session_.failed(r, Phase::Transfer, "pinned memory for a transfer of " + std::to_string(bytes) + " bytes");
  }
  blocks_.push_back({static_cast<std::byte*>(data), size, true, {}});
  return rt::Staging(blocks_.back().data, this, &release);
}

void StagingPool::settle(std::byte* data, rt::Event event) noexcept {
  const std::lock_guard lock(mutex_);
  for (Block& block : blocks_) {
    if (block.data != data) continue;
    block.held = false;
    block.event = event;
  }
}

void StagingPool::give_back_after(rt::Staging staging, rt::Event event) noexcept { settle(staging.let_go(), event); }
void StagingPool::release(void* pool, std::byte* data) noexcept { static_cast<StagingPool*>(pool)->settle(data, {}); }

}  // namespace kiln::cuda
