// What the configuration says of a device's memory.
#pragma once
#include <cstdint>
#include <optional>

#include "kiln/runtime/memory.h"
#include "src/memory/drop_queue.h"

namespace kiln::rt {

// Until install_memory_pools() says otherwise, but for `deferred`, which holds always. What is not set is as the device has it.
struct MemorySettings {
  std::optional<MemoryPools> pools = {};
  std::optional<std::uint64_t> keep = {};
  PersistentPolicy persistent = PersistentPolicy::Enabled;
  DropQueue::Limits deferred = {};

  // The layout that a device begins with, whose own is `layout`.
  MemoryPools applied_to(const MemoryPools& layout) const;
};

// Of this process, for a device that is opened now.
MemorySettings configured_memory(const DeviceProperties& device);

}  // namespace kiln::rt
