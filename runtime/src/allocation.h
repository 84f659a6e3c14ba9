// One piece of device memory behind Memory.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>

#include "src/device.h"
#include "src/server.h"

namespace kiln {

// Goes away with the last Memory: its claims end, and its storage is freed once the tasks that use it are over.
struct Allocation : std::enable_shared_from_this<Allocation> {
  Allocation(std::shared_ptr<Server> owner, std::uint64_t number, std::unique_ptr<rt::Storage> memory)
      : server(std::move(owner)), id(number), storage(std::move(memory)) {}
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  const std::shared_ptr<Server> server;
  const std::uint64_t id;                // never used again
  bool read_only = false;                // imported so; set before it is used
  std::unique_ptr<rt::Storage> storage;  // its address: rt::address(), under the lock of enqueueing, since it may be moved
  // Guarded by the server's enqueue lock.
  std::uint32_t host_views = 0;  // open ones: nothing may write
  // The queue whose lane (enqueue_lock.h) may look at these by itself. Changed under the lock as a whole; and from none to a lane in it.
  static constexpr std::uint8_t kNoLane = 0xff;
  std::atomic<std::uint8_t> lane{kNoLane};
  rt::Event last_write;
  rt::After last_reads;  // since the last write. Last: its far end is hardly used, so that this and the next one share no line
};

}  // namespace kiln
