// Device memory as the driver gives it; which of it is used for what is the memory manager's business (src/memory).
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>

#include "cuda/queues.h"
#include "cuda/session.h"
#include "src/device.h"

namespace kiln::cuda {

// Thread-safe.
class DeviceBlocks {
 public:
  DeviceBlocks(Session& session, Queues& queues);
  ~DeviceBlocks();  // everything given out must be back

  Result<std::unique_ptr<rt::Storage>> allocate(std::uint64_t bytes);
  // Frees it, or lets go of its owner, when its events are over: now, or at a later call.
  void retire(std::unique_ptr<rt::Storage> storage) noexcept;

  // Of imported memory that was handed back and overlaps these bytes.
  rt::After open_tasks(std::uint64_t address, std::uint64_t bytes) const;

  std::uint64_t total_bytes() const { return total_; }
  std::optional<std::uint64_t> free_bytes() const;  // asks the driver

 private:
  void free_block(const rt::Storage& block);
  void let_go() noexcept;

  Session& session_;
  Queues& queues_;
  std::uint64_t total_ = 0;
  mutable std::mutex mutex_;
  rt::Storage* leaving_ = nullptr;  // to be let go of when its last tasks are over
};

}  // namespace kiln::cuda
