// The memory of a simulated device. Device addresses are numbers of their own: no host memory lies there, so that a host that follows one
// crashes. Pinned host memory that is mapped for the device keeps its host address, as with unified addressing.
//
// Every access of a kernel goes through access(), the one place that knows what is out of range, freed or never written. Each allocation is
// surrounded by room that belongs to nobody (at least 512 bytes on either side), and a freed allocation's addresses are not given out again
// as long as addresses last. Which bytes were written is kept for each byte.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace kiln::simcuda {

enum class Access : std::uint8_t { Read, Write, Atomic };

// Why an access is refused or noted.
enum class MemoryFault : std::uint8_t {
  None,
  OutOfRange,  // no allocation, or beyond its end
  Freed,       // an allocation that was freed
  Misaligned,  // the address is no multiple of the access's size
  Unwritten,   // a read of bytes that nobody wrote; the access is done all the same and the device goes on, see Memory::strict_unwritten
};

// Thread-safe: access() without a lock, everything else with one. Blocks of a launch access concurrently; two of them that touch the same
// bytes without atomics race as on the device, but never harm the host (bytes are copied with relaxed atomic operations of the access's
// size).
class Memory {
 public:
  explicit Memory(std::uint64_t total_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Aligned to 512; nothing written. None when the free bytes do not suffice. bytes > 0.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  bool free(std::uint64_t address);  // false: no allocation begins there
  std::uint64_t total_bytes() const;
  std::uint64_t free_bytes() const;

  // Host memory that the device may access at its own address; counts as written. False: overlaps another.
  bool map_host(void* pointer, std::uint64_t bytes);
  bool unmap_host(void* pointer);

  // Where the bytes lie on the host, or null with the reason. A fault Unwritten comes with a pointer. `size` is 1, 2, 4, 8, 16 or 32 and
  // the access must be aligned to it.
  struct Place {
    std::byte* host = nullptr;
    MemoryFault fault = MemoryFault::None;
  };
  Place access(std::uint64_t address, unsigned size, Access kind);
  // The same for a whole range, of any alignment, as copies and fills of the host use it. bytes > 0.
  Place range(std::uint64_t address, std::uint64_t bytes, Access kind);

  // "0x7f00... is 4 bytes behind the end of an allocation of 1024 bytes at 0x7f00..., made as number 3": for reports.
  std::string describe(std::uint64_t address) const;

  // The allocation or mapping that holds an address.
  struct Extent {
    std::uint64_t begin = 0, bytes = 0;
    bool host = false;
  };
  std::optional<Extent> find(std::uint64_t address) const;

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace kiln::simcuda
