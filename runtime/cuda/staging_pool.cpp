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

Result<rt::Staging> StagingPool::take(std::uint64_t bytes) {
  const std::uint64_t size = std::max(kSmallest, std::bit_ceil(bytes));
  for (;;) {
    if (session_.poisoned()) return session_.lost(Phase::Transfer);
    rt::Event pending;
    {
      const std::lock_guard lock(mutex_);
      if (Block* block = find_free(size)) {
        block->held = true;
        return rt::Staging(block->data, this, &release);
      }
      if (bytes_ + size > kMostBytes) {
        // Room is made from blocks of other sizes, else the first copy under way is waited for.
        const Session::Current current(session_);
        std::erase_if(blocks_, [&](const Block& block) {
          const bool drop = !block.held && bytes_ + size > kMostBytes && queues_.done(block.event);
          if (drop) {
            session_.call().cuMemFreeHost(block.data);
            bytes_ -= block.bytes;
          }
          return drop;
        });
        for (const Block& block : blocks_)
          if (bytes_ + size > kMostBytes && !block.held && pending.position == 0) pending = block.event;
      }
      if (pending.position == 0) {  // where all are held by threads at work, a block too many is the lesser evil
        void* data = nullptr;
        const Session::Current current(session_);
        const CUresult r = session_.call().cuMemHostAlloc(&data, size, CU_MEMHOSTALLOC_PORTABLE);
        if (r != CUDA_SUCCESS)
          return session_.failed(r, Phase::Transfer, "pinned memory for a transfer of " + std::to_string(bytes) + " bytes");
        blocks_.push_back({static_cast<std::byte*>(data), size, true, {}});
        bytes_ += size;
        return rt::Staging(blocks_.back().data, this, &release);
      }
    }
    queues_.wait(pending);
  }
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
