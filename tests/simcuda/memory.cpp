// Three reservations of address space of one size: the addresses that the device sees (inaccessible), the bytes behind them, and a byte for
// each byte that says whether it was written. Tables find the allocation of an address in constant time: one entry for 2 MiB, which refers
// to a finer table of 512-byte pieces where an allocation does not fill it.
#include "simcuda/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

namespace kiln::simcuda {
namespace {

constexpr std::uint64_t kPiece = 512, kChunk = std::uint64_t{2} << 20, kPage = 4096;
constexpr std::uint32_t kNobody = 0, kMixed = ~std::uint32_t{0};
constexpr std::uint64_t kMaxRecords = std::uint64_t{1} << 24;

std::uint64_t up(std::uint64_t value, std::uint64_t step) { return (value + step - 1) / step * step; }

// Address space without memory; pages come when they are touched.
std::byte* reserve(std::uint64_t bytes, bool accessible) {
  void* p = mmap(nullptr, bytes, accessible ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return nullptr;
  madvise(p, bytes, MADV_DONTDUMP);
  return static_cast<std::byte*>(p);
}

struct Record {
  std::atomic<std::uint64_t> begin{0}, end{0};
  std::atomic<bool> live{false}, all_written{false};
};

std::string hex(std::uint64_t v) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%llx", static_cast<unsigned long long>(v));
  return text;
}

std::string distance(std::uint64_t bytes) { return std::to_string(bytes) + (bytes == 1 ? " byte" : " bytes"); }

}  // namespace

struct Memory::Impl {
  std::uint64_t total = 0, reserved = 0;
  std::byte *addresses = nullptr, *bytes = nullptr, *written = nullptr;
  std::atomic<std::uint32_t>*chunks = nullptr, *pieces = nullptr;
  Record* records = nullptr;

  mutable std::mutex mutex;
  std::uint64_t used = 0, next = kChunk;              // next: offset of the first address never given out
  std::uint32_t made = 0;                             // number of the last allocation
  std::map<std::uint64_t, std::uint32_t> live, dead;  // offset -> number
  std::map<std::uint64_t, std::uint64_t> host;        // mapped host memory: begin -> bytes

  std::uint64_t base() const { return reinterpret_cast<std::uint64_t>(addresses); }

  explicit Impl(std::uint64_t total_bytes) : total(total_bytes) {
    const std::uint64_t wanted = up(total_bytes + kChunk, kChunk) + kChunk;
    // Room for addresses to be given out anew for a while, not so much that a thread sanitizer has no place for several devices.
    const std::uint64_t roomy = std::min(wanted * 4, wanted + (std::uint64_t{64} << 30));
    for (const std::uint64_t size : {roomy, wanted}) {
      if (bytes != nullptr) break;
      reserved = size;
      addresses = reserve(reserved, false);
      bytes = reserve(reserved, true);
      written = reserve(reserved, true);
      chunks = reinterpret_cast<std::atomic<std::uint32_t>*>(reserve(up(reserved / kChunk * 4, kPage), true));
      pieces = reinterpret_cast<std::atomic<std::uint32_t>*>(reserve(up(reserved / kPiece * 4, kPage), true));
      records = reinterpret_cast<Record*>(reserve(up(kMaxRecords * sizeof(Record), kPage), true));
      if (addresses == nullptr || bytes == nullptr || written == nullptr || chunks == nullptr || pieces == nullptr || records == nullptr)
        release();
    }
    if (bytes == nullptr) throw std::bad_alloc();
  }
  ~Impl() { release(); }

  void release() {
    const auto drop = [](auto*& p, std::uint64_t size) {
      if (p != nullptr) munmap(static_cast<void*>(p), size);
      p = nullptr;
    };
    drop(addresses, reserved);
    drop(bytes, reserved);
    drop(written, reserved);
    drop(chunks, up(reserved / kChunk * 4, kPage));
    drop(pieces, up(reserved / kPiece * 4, kPage));
    drop(records, up(kMaxRecords * sizeof(Record), kPage));
  }

  // The number of the allocation that has the 512-byte piece of an offset, 0 for none.
  std::uint32_t owner(std::uint64_t offset) const {
    const std::uint32_t number = chunks[offset / kChunk].load(std::memory_order_acquire);
    return number == kMixed ? pieces[offset / kPiece].load(std::memory_order_acquire) : number;
  }

  void mark(std::uint64_t begin, std::uint64_t end, std::uint32_t number) {
    for (std::uint64_t at = begin; at < end;) {
      const std::uint64_t chunk = at / kChunk, chunk_end = std::min((chunk + 1) * kChunk, end);
      if (at % kChunk == 0 && chunk_end == (chunk + 1) * kChunk) {
        chunks[chunk].store(number, std::memory_order_release);
      } else {
        for (std::uint64_t p = at / kPiece; p < up(chunk_end, kPiece) / kPiece; ++p) pieces[p].store(number, std::memory_order_release);
        chunks[chunk].store(kMixed, std::memory_order_release);
      }
      at = chunk_end;
    }
  }

  // Gives whole pages back and zeroes the rest: bytes and marks are zero then.
  void forget(std::uint64_t begin, std::uint64_t end) {
    const std::uint64_t first = up(begin, kPage), last = end / kPage * kPage;
    const auto zero = [this](std::uint64_t from, std::uint64_t to) {
      std::memset(bytes + from, 0, to - from);
      std::memset(written + from, 0, to - from);
    };
    if (first >= last) return zero(begin, end);
    zero(begin, first);
    zero(last, end);
    madvise(bytes + first, last - first, MADV_DONTNEED);
    madvise(written + first, last - first, MADV_DONTNEED);
  }

  // An offset with `size` bytes (guards included) that no live allocation uses: fresh addresses first, then the gaps from the lowest on.
  std::optional<std::uint64_t> room(std::uint64_t size) {
    if (reserved - next >= size) {
      const std::uint64_t at = next;
      next += size;
      return at;
    }
    std::uint64_t at = kChunk;
    for (const auto& [offset, number] : live) {
      if (offset - kPiece >= at + size) break;
      at = up(records[number].end.load() - base(), kPiece) + kPiece;
    }
    if (at + size > reserved) return std::nullopt;
    // What is remembered of freed allocations there is over.
    auto it = dead.upper_bound(at);
    if (it != dead.begin()) --it;
    while (it != dead.end() && it->first < at + size) it = records[it->second].end.load() - base() > at ? dead.erase(it) : std::next(it);
    return at;
  }

  // Of mapped host memory.
  std::optional<Extent> host_extent(std::uint64_t address) const {
    auto it = host.upper_bound(address);
    if (it == host.begin()) return std::nullopt;
    --it;
    if (address >= it->first + it->second) return std::nullopt;
    return Extent{it->first, it->second, true};
  }

  MemoryFault why_not(std::uint64_t address) const {
    if (address < base() || address >= base() + reserved) return MemoryFault::OutOfRange;
    const std::lock_guard lock(mutex);
    auto it = dead.upper_bound(address - base());
    if (it == dead.begin()) return MemoryFault::OutOfRange;
    return address < records[std::prev(it)->second].end.load() ? MemoryFault::Freed : MemoryFault::OutOfRange;
  }

  bool is_written(std::uint64_t offset, std::uint64_t size) const {
    const auto* at = reinterpret_cast<const std::uint8_t*>(written + offset);
    std::uint64_t i = 0;
    for (; i < size && (offset + i) % 8 != 0; ++i)
      if (__atomic_load_n(at + i, __ATOMIC_RELAXED) == 0) return false;
    for (; i + 8 <= size; i += 8)
      if (__atomic_load_n(reinterpret_cast<const std::uint64_t*>(at + i), __ATOMIC_RELAXED) != 0x0101010101010101u) return false;
    for (; i < size; ++i)
      if (__atomic_load_n(at + i, __ATOMIC_RELAXED) == 0) return false;
    return true;
  }
  void set_written(std::uint64_t offset, std::uint64_t size) {
    auto* at = reinterpret_cast<std::uint8_t*>(written + offset);
    std::uint64_t i = 0;
    for (; i < size && (offset + i) % 8 != 0; ++i) __atomic_store_n(at + i, 1, __ATOMIC_RELAXED);
    for (; i + 8 <= size; i += 8) __atomic_store_n(reinterpret_cast<std::uint64_t*>(at + i), 0x0101010101010101u, __ATOMIC_RELAXED);
    for (; i < size; ++i) __atomic_store_n(at + i, 1, __ATOMIC_RELAXED);
  }
};

Memory::Memory(std::uint64_t total_bytes) : impl_(std::make_unique<Impl>(total_bytes)) {}
Memory::~Memory() = default;

std::uint64_t Memory::total_bytes() const { return impl_->total; }
std::uint64_t Memory::free_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->total - impl_->used;
}

std::optional<std::uint64_t> Memory::allocate(std::uint64_t bytes) {
  Impl& m = *impl_;
  if (bytes == 0 || bytes > m.total) return std::nullopt;
  const std::uint64_t size = up(bytes, kPiece);
  const std::lock_guard lock(m.mutex);
  if (size > m.total - m.used || m.made + 1 >= kMaxRecords) return std::nullopt;
  const auto at = m.room(size + 2 * kPiece);
  if (!at) return std::nullopt;
  const std::uint64_t offset = *at + kPiece;
  const std::uint32_t number = ++m.made;
  Record& r = m.records[number];
  r.begin = m.base() + offset;
  r.end = m.base() + offset + bytes;
  r.live = true;
  m.forget(offset, offset + size);
  m.mark(offset, offset + size, number);
  m.live.emplace(offset, number);
  m.used += size;
  return r.begin.load();
}

bool Memory::free(std::uint64_t address) {
  Impl& m = *impl_;
  const std::lock_guard lock(m.mutex);
  if (address < m.base()) return false;
  const auto it = m.live.find(address - m.base());
  if (it == m.live.end()) return false;
  Record& r = m.records[it->second];
  const std::uint64_t offset = it->first, size = up(r.end - r.begin, kPiece);
  r.live = false;
  m.mark(offset, offset + size, kNobody);
  m.forget(offset, offset + size);
  m.dead[offset] = it->second;
  m.live.erase(it);
  m.used -= size;
  return true;
}

bool Memory::map_host(void* pointer, std::uint64_t bytes) {
  const auto begin = reinterpret_cast<std::uint64_t>(pointer);
  const std::lock_guard lock(impl_->mutex);
  auto it = impl_->host.lower_bound(begin);
  if (bytes == 0 || (it != impl_->host.end() && it->first < begin + bytes)) return false;
  if (it != impl_->host.begin() && std::prev(it)->first + std::prev(it)->second > begin) return false;
  impl_->host.emplace(begin, bytes);
  return true;
}

bool Memory::unmap_host(void* pointer) {
  const std::lock_guard lock(impl_->mutex);
  return impl_->host.erase(reinterpret_cast<std::uint64_t>(pointer)) == 1;
}

std::optional<Memory::Window> Memory::window(std::uint64_t address) const {
  const Impl& m = *impl_;
  if (address - m.base() < m.reserved) {
    const Record& r = m.records[m.owner(address - m.base())];
    const std::uint64_t begin = r.begin.load(std::memory_order_relaxed), end = r.end.load(std::memory_order_relaxed);
    if (address < begin || address >= end || !r.live.load(std::memory_order_relaxed)) return std::nullopt;
    const std::uint64_t offset = begin - m.base();
    return Window{begin, end, m.bytes + offset,
                  r.all_written.load(std::memory_order_relaxed) ? nullptr : reinterpret_cast<std::uint8_t*>(m.written + offset)};
  }
  const std::lock_guard lock(m.mutex);
  const auto extent = m.host_extent(address);
  if (!extent) return std::nullopt;
  return Window{extent->begin, extent->begin + extent->bytes, reinterpret_cast<std::byte*>(extent->begin), nullptr};
}

Memory::Place Memory::access(std::uint64_t address, unsigned size, Access kind) {
  if (address % size != 0) return {nullptr, MemoryFault::Misaligned};
  return range(address, size, kind);
}

Memory::Place Memory::range(std::uint64_t address, std::uint64_t bytes, Access kind) {
  Impl& m = *impl_;
  const auto w = window(address);
  if (!w) return {nullptr, m.why_not(address)};
  if (bytes > w->end - address) return {nullptr, MemoryFault::OutOfRange};
  std::byte* host = w->host + (address - w->begin);
  if (w->written == nullptr) return {host, MemoryFault::None};
  const std::uint64_t offset = address - m.base();
  MemoryFault fault = MemoryFault::None;
  if (kind != Access::Write && !m.is_written(offset, bytes)) fault = MemoryFault::Unwritten;
  if (kind != Access::Read) {
    if (address == w->begin && bytes == w->end - w->begin) {
      m.records[m.owner(offset)].all_written.store(true, std::memory_order_relaxed);
    } else {
      m.set_written(offset, bytes);
    }
  }
  return {host, fault};
}

std::optional<Memory::Extent> Memory::find(std::uint64_t address) const {
  const Impl& m = *impl_;
  const std::lock_guard lock(m.mutex);
  if (address - m.base() < m.reserved) {
    auto it = m.live.upper_bound(address - m.base());
    if (it == m.live.begin()) return std::nullopt;
    const Record& r = m.records[std::prev(it)->second];
    if (address >= r.end) return std::nullopt;
    return Extent{r.begin, r.end - r.begin, false};
  }
  return m.host_extent(address);
}

std::string Memory::describe(std::uint64_t address) const {
  const Impl& m = *impl_;
  const std::lock_guard lock(m.mutex);
  if (const auto extent = m.host_extent(address)) {
    return hex(address) + " is " + distance(address - extent->begin) + " into mapped host memory of " + distance(extent->bytes) + " at " +
           hex(extent->begin);
  }
  if (address - m.base() >= m.reserved) return hex(address) + " is no address of this device";
  const std::uint64_t offset = address - m.base();
  const auto about = [&](std::uint32_t number) {
    const Record& r = m.records[number];
    return std::string(r.live ? "an" : "a freed") + " allocation of " + distance(r.end - r.begin) + " at " + hex(r.begin) +
           ", made as number " + std::to_string(number);
  };
  // The allocation that holds it, else the nearest one.
  std::uint64_t nearest = ~std::uint64_t{0};
  std::string text = "no allocation was ever made near it";
  for (const auto* map : {&m.live, &m.dead}) {
    auto it = map->upper_bound(offset);
    if (it != map->end() && it->first - offset < nearest) {
      nearest = it->first - offset;
      text = distance(nearest) + " before " + about(it->second);
    }
    if (it == map->begin()) continue;
    const Record& r = m.records[std::prev(it)->second];
    if (address < r.end) return hex(address) + " is " + distance(address - r.begin) + " into " + about(std::prev(it)->second);
    if (address - r.end < nearest) {
      nearest = address - r.end;
      text = nearest == 0 ? "just behind the end of " + about(std::prev(it)->second)
                          : distance(nearest) + " behind the end of " + about(std::prev(it)->second);
    }
  }
  return hex(address) + " is " + text;
}

}  // namespace kiln::simcuda
