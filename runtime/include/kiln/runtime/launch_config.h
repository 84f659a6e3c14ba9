// Grid and block of a launch. Inert data: making one checks only that the numbers fit 32 bits; the launch validates.
#pragma once
#include <concepts>
#include <cstdint>
#include <utility>

#include "kiln/runtime/error.h"

namespace kiln {

struct DeviceProperties;  // client.h

// One extent: takes any host integer and refuses (kiln::Exception) a negative one or one above 2^32 - 1.
struct Extent32 {
  std::uint32_t value = 1;
  constexpr Extent32() = default;
  template <std::integral I>
  requires(!std::same_as<I, bool>)
  constexpr Extent32(I v) : value(static_cast<std::uint32_t>(v)) {
    if (!std::in_range<std::uint32_t>(v)) refuse(v < 0, static_cast<std::uint64_t>(v));
  }
  [[noreturn]] static void refuse(bool negative, std::uint64_t v);
};

struct Dim3 {
  std::uint32_t x = 1, y = 1, z = 1;
  constexpr Dim3() = default;
  constexpr Dim3(Extent32 x_, Extent32 y_ = 1, Extent32 z_ = 1) : x(x_.value), y(y_.value), z(z_.value) {}
  constexpr std::uint32_t operator[](int axis) const { return axis == 0 ? x : axis == 1 ? y : z; }
  bool operator==(const Dim3&) const = default;
};

// A count: takes any host integer and refuses (kiln::Exception) a negative one.
struct Extent64 {
  std::uint64_t value = 0;
  constexpr Extent64() = default;
  template <std::integral I>
  requires(!std::same_as<I, bool>)
  constexpr Extent64(I v) : value(static_cast<std::uint64_t>(v)) {
    if (v < 0) Extent32::refuse(true, static_cast<std::uint64_t>(v));
  }
};

struct LaunchConfig {
  Dim3 grid, block;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory
  Dim3 cluster{1, 1, 1};
  bool cooperative = false;    // all blocks run at a time; refused where they do not fit
  std::uint64_t elements = 0;  // above 0: grid and block are not given; the launch chooses them for so many threads (automatic)
  bool operator==(const LaunchConfig&) const = default;
};

// 256 threads a block, ceil(n / 256) blocks. n = 0 gives a grid of 0, which is a launch that does nothing.
LaunchConfig for_num_elems(Extent32 n);
// At least n threads along x, in blocks as suit the kernel on the device: its block_size, where it declares one; else, on a GPU, the size
// with which most threads are resident, by the registers and the shared memory of the compiled program; on the CPU device 256, or less,
// down to a warp, where the workers would otherwise have no block each. Never above max_threads. The kernel guards, as with for_num_elems.
// n = 0 is a launch that does nothing. With a block of several axes (block_size(16, 16)) the blocks lie along x.
LaunchConfig automatic(Extent64 n);
// x = columns, y = rows: grid of ceil(cols / bx) x ceil(rows / by), the block as given.
struct Cover {
  Extent32 cols = 1, rows = 1, planes = 1;
};
LaunchConfig cover(Cover items, Dim3 block);

// Blocks in one row, folded onto the axes of a grid.
struct Spread {
  Dim3 grid;
  std::uint64_t blocks = 0;  // that the grid has
  bool exact = true;         // as many as were asked for; else there are more, and the kernel leaves out those beyond
};
// n blocks for a device with that largest grid: x is halved, rounding up, and y doubled until x fits; then y and z in the same way. In 64
// bits. Errors: TooManyResources (DeviceDimensionExceeded) where z does not fit either; Validation (ZeroDimension) for a largest grid with
// an axis of 0. (65535, 65535, 65535) and 100000 give (50000, 2, 1). n = 0 gives (0, 1, 1). O(log n).
Result<Spread> spread(const Dim3& max_grid, Extent64 n);
// A block of whole warps, (warp, warps, 1), for a kernel with so many units of work a block: on a GPU one warp below 64 units, two below
// 128, four below 256, then eight; on the CPU device a warp for each unit, but no more than there are workers. No more warps than the
// device's largest block has.
Dim3 block_for_units(const DeviceProperties& device, Extent64 units);

}  // namespace kiln
