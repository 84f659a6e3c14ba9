// The memory of a simulated device. Device addresses are numbers of their own: no host memory lies there, so that a host that follows one
// crashes. Pinned host memory that is mapped for the device keeps its host address, as with unified addressing.
//
// Every access of a kernel goes through access(), or through a Window of one allocation that the engine keeps for the length of a launch:
// the two places that know what is out of range, freed or never written. Each allocation is surrounded by room that belongs to nobody (at
// least 512 bytes on either side), and a freed allocation's addresses are not given out again as long as addresses last. Which bytes were
// written is kept for each byte. Nothing is committed before it is touched.
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
  Unwritten,   // a read (or an atomic) of bytes that nobody wrote; comes with a place, the access can be done all the same
};

// Thread-safe: access() of an allocation takes no lock, everything else does. Blocks of a launch access concurrently; two of them that
// touch the same bytes without atomics race as on the device, but never harm the host (bytes are copied with relaxed atomic operations).
class Memory {
 public:
  explicit Memory(std::uint64_t total_bytes);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  // Aligned to 512; zero, and nothing of it counts as written. None when the free bytes do not suffice (allocations count in steps of 512).
  // bytes > 0.
  std::optional<std::uint64_t> allocate(std::uint64_t bytes);
  bool free(std::uint64_t address);  // false: no allocation begins there
  std::uint64_t total_bytes() const;
  std::uint64_t free_bytes() const;

  // Host memory that the device may access at its own address; counts as written. False: overlaps another.
  bool map_host(void* pointer, std::uint64_t bytes);
  bool unmap_host(void* pointer);

  // Where the bytes lie on the host, or null with the reason. `size` is 1, 2, 4, 8, 16 or 32 and the access must be aligned to it. A write
  // marks the bytes as written.
  struct Place {
    std::byte* host = nullptr;
    MemoryFault fault = MemoryFault::None;
  };
  Place access(std::uint64_t address, unsigned size, Access kind);
  // The same for a whole range, of any alignment, as copies and fills of the host use it. bytes > 0.
  Place range(std::uint64_t address, std::uint64_t bytes, Access kind);

  // The allocation or mapping that holds an address, for many accesses: valid until it is freed, and memory that belongs to the process
  // even after. `written` has a byte for each byte, 0 or 1; null: all of it counts as written.
  struct Window {
    std::uint64_t begin = 0, end = 0;
    std::byte* host = nullptr;
    std::uint8_t* written = nullptr;
  };
  std::optional<Window> window(std::uint64_t address) const;

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
