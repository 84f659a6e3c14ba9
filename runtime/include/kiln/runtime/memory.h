// Memory of a device: pools and their layout, reports, cleanup, windows for memory that stays.
//
// A device's memory is taken in pages and given out in slices of them, in the order of work: memory that is freed may be given out again
// while the device still works on it, and whoever gets it comes after that work. Nobody waits for it on the host. All functions are
// thread-safe; what they cost is said with each.
#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "kiln/runtime/client.h"

namespace kiln {

enum class PoolKind : std::uint8_t {
  Sliced,     // pages of one size, cut in slices
  Exclusive,  // each allocation has a page, of about its size
  Direct,     // each allocation has a page of just its size, which goes back to the device when it is freed
  Persistent  // pages of just the sizes asked for, kept until a cleanup; every device has one, for PersistentMemory
};
const char* name(PoolKind kind);

inline constexpr std::uint64_t kAnySize = std::numeric_limits<std::uint64_t>::max();

// One pool of a layout. Sizes are bytes; those of pages are rounded up to the device's alignment.
struct PoolConfig {
  PoolKind kind = PoolKind::Sliced;
  std::uint64_t page_bytes = 0;  // Sliced: of each page. Exclusive: of the largest one, kAnySize for no limit. Direct: 0, it has no size
  std::uint64_t max_slice = 0;   // Sliced: the largest allocation that goes here; 0: a page
  std::uint64_t cap = 0;         // of all pages of the pool; 0: none. What goes beyond it goes to the next pool that takes the size
  std::uint64_t idle = 0;  // a page that was empty for this many allocations of its pool goes back to the device; 0: only by the limit
  bool operator==(const PoolConfig&) const = default;
};

// What PersistentMemory means on a device.
enum class PersistentPolicy : std::uint8_t {
  Enabled,    // allocations within a window are persistent
  SizeMatch,  // and outside of one, what has just the size of unused persistent memory takes that
  Disabled,   // windows mean nothing
  Enforced    // every allocation is persistent
};

// The layout of a device's memory: an allocation goes to the first pool that takes its size and is not full.
struct MemoryPools {
  std::vector<PoolConfig> pools;
  std::optional<std::uint64_t> keep;  // bytes of empty pages that are kept for the next allocations; none: as the device has it
  PersistentPolicy persistent = PersistentPolicy::Enabled;

  // Small allocations in slices of shared pages, a ladder of page sizes up to `max_page`, large ones in pages of their own: few calls of
  // the driver, some memory reserved that is not used. `max_page` 0: a quarter of the device's memory.
  static MemoryPools sub_slices(const DeviceProperties& device, std::uint64_t max_page = 0);
  // Every allocation in a page of its own: little is reserved that is not used.
  static MemoryPools exclusive_pages();
};

struct MemoryUsage {
  std::uint64_t allocations = 0;     // that live
  std::uint64_t bytes_in_use = 0;    // as they were asked for
  std::uint64_t bytes_padding = 0;   // what they take beyond that, for alignment and the size of a page
  std::uint64_t bytes_reserved = 0;  // memory taken from the device, in use or not
  bool operator==(const MemoryUsage&) const = default;
};

struct PoolReport {
  PoolKind kind = PoolKind::Sliced;
  std::uint32_t id = 0;   // of the pool, as long as the device lives; 255 is the persistent one
  bool outdated = false;  // of an earlier layout: nothing new is put there, and a cleanup moves out what is left
  std::uint64_t page_bytes = 0, cap = 0;
  std::uint64_t pages = 0, pages_peak = 0;
  std::uint64_t pages_unmapped = 0;  // of `pages`: counted, but no memory was taken for them yet (dry runs)
  std::uint64_t largest_allocation = 0, bytes_in_use_peak = 0;
  MemoryUsage usage;
  bool operator==(const PoolReport&) const = default;
};

struct MemoryReport {
  std::vector<PoolReport> pools;  // outdated ones first, the persistent one last
  MemoryUsage total;
  std::uint64_t bytes_in_use_peak = 0, bytes_reserved_peak = 0;
  std::uint64_t bytes_leaving = 0;  // empty or unused pages on their way back to the device; in no pool any more
  // A table for people: a line for each pool and one for all, with the peaks. Its form may change.
  std::string text() const;
  bool operator==(const MemoryReport&) const = default;
};

// Of the device, all its streams. Does not wait. Linear in the pools.
Result<MemoryReport> memory_report(const Client& client);
// Of what was allocated for a stream: by the thread whose default stream it is, or with allocate(stream, bytes). Pages are shared by the
// streams, so bytes_reserved is what the stream's allocations take, and pages are 0. Pools that it never used are left out. Errors:
// NotFound where nothing was ever allocated for it, ForeignHandle for a stream of another device.
Result<MemoryReport> memory_report(const Client& client, const Stream& stream);

// Gives memory that nobody uses back to the device; waits for the work that still uses what was freed. Allocations in pools of an earlier
// layout move to the present one (their bytes are copied on the device, in the order of work; what they carry, failures too, goes with
// them), but for those whose address somebody knows: adopted, exported, looked at by the host, or in a captured graph. Gives the bytes that
// went back. Errors: PageUpdateForbidden while a graph is captured; device faults; OutOfMemory where there was no room to move something.
Result<std::uint64_t> memory_cleanup(const Client& client);

// Another layout from now on. What is allocated stays where it is until it is freed, or moved by memory_cleanup(). Errors (Validation; the
// rule names it): EmptyPoolList, ZeroSize, SliceLargerThanPage, CapSmallerThanPage, TooManyPages (more than 65536 by the cap), TooManyPools
// (more than 254), PersistentPool (cannot be listed), UnknownPoolKind; PageUpdateForbidden while a graph is captured. Nothing changes.
Result<void> install_memory_pools(const Client& client, const MemoryPools& layout);

// While one lives, allocations of its thread on the device are persistent: for weights and such, that live long beside others that come and
// go. Windows nest. To be destroyed by the thread that made it, the inner one first.
class [[nodiscard]] PersistentMemory {
 public:
  explicit PersistentMemory(const Client& client);
  ~PersistentMemory();
  PersistentMemory(const PersistentMemory&) = delete;
  PersistentMemory& operator=(const PersistentMemory&) = delete;

 private:
  Client client_;
};

// As rt::allocate, on the account of a stream: it may get memory at once that the stream's work is not through with.
Result<Memory> allocate(const Stream& stream, std::uint64_t bytes);

}  // namespace kiln
