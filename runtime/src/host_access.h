// Page-locked host memory with the tasks that use it.
#pragma once
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "src/device.h"
#include "src/failure/launch_log.h"
#include "src/server.h"

namespace kiln::rt {

// What is being downloaded: the read's place among the operations, and the task.
struct Download {
  std::unique_ptr<LogRead> place;
  Event at;
};

// Used by one thread at a time; the mutex is for those who only ask.
struct HostMemory {
  HostMemory(std::shared_ptr<Server> owner, const Device::Mapped& memory, std::uint64_t size)
      : server(std::move(owner)), mapped(memory), bytes(size) {}
  ~HostMemory();
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;

  const std::shared_ptr<Server> server;
  const Device::Mapped mapped;  // of no bytes: there is none
  const std::uint64_t bytes;
  std::mutex mutex;
  // Guarded.
  After reads, writes;              // by the device
  std::vector<Download> downloads;  // whose verdict nobody has asked for
  std::optional<Error> refused;     // what a download came to: the bytes are not what was to be read
};

}  // namespace kiln::rt
