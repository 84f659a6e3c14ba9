// Layouts of pools: what is wrong with one, and the one a device begins with.
#pragma once
#include "kiln/runtime/memory.h"

namespace kiln::rt {

inline constexpr std::uint32_t kPersistentPool = 255;  // its id
inline constexpr std::size_t kMostPools = 254;
inline constexpr std::uint64_t kMostPages = 65536;

// The layout with its sizes rounded up to the alignment, or what is wrong with it.
Result<MemoryPools> checked(const MemoryPools& layout, std::uint64_t alignment);

}  // namespace kiln::rt
