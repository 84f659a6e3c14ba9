// Device memory: plain allocations of the driver, kept when they are handed back and given out again in stream order.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "cuda/queues.h"
#include "cuda/session.h"
#include "src/device.h"

namespace kiln::cuda {

// Thread-safe. A block that is handed back with events still open may be given out at once: who gets it comes after them.
class MemoryPool {
 public:
  // Keeps at most `limit` bytes of blocks that nobody uses; 0: a quarter of the device's memory.
  MemoryPool(Session& session, Queues& queues, std::uint64_t limit);
  ~MemoryPool();  // frees what is kept. Everything given out must be back.

  // Where the driver has no more, what is kept is freed and it is asked once more.
  Result<std::unique_ptr<rt::Storage>> allocate(std::uint64_t bytes);
  void retire(std::unique_ptr<rt::Storage> storage) noexcept;

  // Of imported memory that was handed back and overlaps these bytes.
  rt::After open_tasks(std::uint64_t address, std::uint64_t bytes) const;

  std::uint64_t pooled_bytes() const;  // kept and unused
  std::uint64_t used_bytes() const;    // given out
  std::uint64_t total_bytes() const { return total_; }

 private:
  using Block = std::unique_ptr<rt::Storage>;
  using Blocks = std::multimap<std::uint64_t, Block>;

  Block take_kept(std::uint64_t bytes);
  CUresult ask_driver(std::uint64_t bytes, CUdeviceptr& address);
  std::uint64_t free_kept(std::uint64_t keep, bool wait);
  void free_block(const rt::Storage& block);
  void let_go() noexcept;
  void leave(std::unique_ptr<rt::Storage> storage) noexcept;
  Error no_memory(CUresult result, std::uint64_t bytes, std::uint64_t given_back);

  Session& session_;
  Queues& queues_;
  std::uint64_t total_ = 0, limit_ = 0;
  mutable std::mutex mutex_;
  Blocks kept_;                     // by capacity
  rt::Storage* leaving_ = nullptr;  // to be let go of when its last tasks are over: imported memory, and blocks without room among the kept
  std::uint64_t pooled_ = 0, used_ = 0;
};

}  // namespace kiln::cuda
