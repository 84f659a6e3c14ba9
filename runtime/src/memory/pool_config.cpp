#include "src/memory/pool_config.h"

#include <algorithm>
#include <string>

#include "src/make_error.h"
#include "src/memory/page_pool.h"

namespace kiln {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20, kGiB = std::uint64_t{1} << 30;

// Large pages are missed less: they cost more to take again.
std::uint64_t idle_of(std::uint64_t page_bytes) { return 5000 * std::max<std::uint64_t>(1, (kGiB + page_bytes + kGiB / 2) / kGiB); }

PoolConfig sliced(std::uint64_t page, std::uint64_t largest) { return {PoolKind::Sliced, page, largest, 0, idle_of(page)}; }

}  // namespace

const char* name(PoolKind kind) {
  switch (kind) {
    case PoolKind::Sliced: return "sliced";
    case PoolKind::Exclusive: return "exclusive";
    case PoolKind::Direct: return "direct";
    case PoolKind::Persistent: return "persistent";
  }
  return "unknown";
}

MemoryPools MemoryPools::sub_slices(const DeviceProperties& device, std::uint64_t max_page) {
  if (max_page == 0) max_page = device.memory_bytes / 4;
  MemoryPools layout;
  layout.pools.push_back(sliced(2 * kMiB, kMiB / 2));
  // A slice is at most an eighth of its page, so that seven eighths of one are used at the worst.
  for (std::uint64_t page = 32 * kMiB; page <= max_page && page <= 512 * kMiB; page *= 4) layout.pools.push_back(sliced(page, page / 8));
  layout.pools.push_back({PoolKind::Exclusive, kAnySize, 0, 0, idle_of(kGiB)});
  return layout;
}

MemoryPools MemoryPools::exclusive_pages() {
  MemoryPools layout;
  layout.pools.push_back({PoolKind::Exclusive, kAnySize, 0, 0, idle_of(kMiB)});
  return layout;
}

namespace rt {
Result<MemoryPools> checked(const MemoryPools& layout, std::uint64_t alignment) {
  MemoryPools good = layout;
  if (good.pools.empty()) return make_error(ErrorCode::Validation, "EmptyPoolList", "a layout of memory needs a pool at least");
  if (good.pools.size() > kMostPools) {
    return make_error(ErrorCode::Validation, "TooManyPools", "a layout of memory has " + std::to_string(kMostPools) + " pools at most",
                      {.requested = good.pools.size(), .limit = kMostPools});
  }
  for (std::size_t i = 0; i < good.pools.size(); ++i) {
    PoolConfig& pool = good.pools[i];
    const std::string which = "pool " + std::to_string(i);
    if (pool.kind == PoolKind::Persistent)
      return make_error(ErrorCode::Validation, "PersistentPool",
                        which + " is persistent; every device has such a pool by itself, use PersistentMemory");
    if (pool.kind != PoolKind::Sliced && pool.kind != PoolKind::Exclusive && pool.kind != PoolKind::Direct)
      return make_error(ErrorCode::Validation, "UnknownPoolKind", which + " is of no kind that there is; take a PoolKind by its name");
    if (pool.kind == PoolKind::Direct) {
      pool.page_bytes = pool.max_slice = 0;  // its pages have the sizes that are asked for
      continue;
    }
    if (pool.page_bytes == 0) return make_error(ErrorCode::Validation, "ZeroSize", which + " has pages of no bytes");
    if (pool.page_bytes != kAnySize) pool.page_bytes = round_up_to(pool.page_bytes, alignment);
    if (pool.kind == PoolKind::Sliced && pool.page_bytes == kAnySize)
      return make_error(ErrorCode::Validation, "ZeroSize", which + " is cut in slices, so its pages need a size");
    if (pool.max_slice > pool.page_bytes) {
      return make_error(ErrorCode::Validation, "SliceLargerThanPage", which + " is to hold allocations that are larger than its pages",
                        {.requested = pool.max_slice, .limit = pool.page_bytes});
    }
    if (pool.cap == 0) continue;
    const bool fixed = pool.kind == PoolKind::Sliced;
    if (pool.cap < (fixed ? pool.page_bytes : alignment)) {
      return make_error(ErrorCode::Validation, "CapSmallerThanPage",
                        which + " has a cap below the size of a page, so that nothing would go there",
                        {.requested = pool.page_bytes, .limit = pool.cap});
    }
    if (fixed && pool.cap / pool.page_bytes > kMostPages) {
      return make_error(ErrorCode::Validation, "TooManyPages", which + " may have more pages than a pool can hold; give it larger ones",
                        {.requested = pool.cap / pool.page_bytes, .limit = kMostPages});
    }
  }
  return good;
}

}  // namespace rt
}  // namespace kiln
