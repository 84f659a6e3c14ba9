// Pinned host memory for transfers, kept until the copy that uses it is over.
#pragma once
#include <cstdint>
#include <mutex>
#include <vector>

#include "cuda/queues.h"
#include "cuda/session.h"
#include "src/device.h"

namespace kiln::cuda {

// Thread-safe. Blocks are powers of two and kept for the next transfer, kMostBytes in all; who asks for more waits for a copy.
class StagingPool {
 public:
  static constexpr std::uint64_t kLargest = std::uint64_t{32} << 20;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;

  StagingPool(Session& session, Queues& queues) : session_(session), queues_(queues) {}
  ~StagingPool();

  // bytes in (0, kLargest].
  Result<rt::Staging> take(std::uint64_t bytes);
  // The block belongs to a copy that is over with the event.
  void give_back_after(rt::Staging staging, rt::Event event) noexcept;

 private:
  struct Block {
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
    bool held = false;  // somebody has it, no event yet
    rt::Event event;    // else: free when this is over
  };
  static void release(void* pool, std::byte* data) noexcept;
  void settle(std::byte* data, rt::Event event) noexcept;
  Block* find_free(std::uint64_t bytes);
  std::vector<std::byte*> make_room(std::uint64_t size);
  Result<rt::Staging> pin(std::uint64_t bytes, std::uint64_t size);

  Session& session_;
  Queues& queues_;
  std::mutex mutex_;
  std::vector<Block> blocks_;
  std::uint64_t bytes_ = 0;
};

}  // namespace kiln::cuda
