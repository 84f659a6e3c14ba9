// Grid and block of a launch. Inert data: making one checks only that the numbers fit 32 bits; the launch validates.
#pragma once
#include <concepts>
#include <cstdint>
#include <utility>

#include "kiln/runtime/error.h"

namespace kiln {

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

struct LaunchConfig {
  Dim3 grid, block;
  std::uint32_t shared_bytes = 0;  // dynamic shared memory
  Dim3 cluster{1, 1, 1};
  bool cooperative = false;  // all blocks run at a time; refused where they do not fit
  bool operator==(const LaunchConfig&) const = default;
};

// 256 threads a block, ceil(n / 256) blocks. n = 0 gives a grid of 0, which is a launch that does nothing.
LaunchConfig for_num_elems(Extent32 n);
// x = columns, y = rows: grid of ceil(cols / bx) x ceil(rows / by), the block as given.
struct Cover {
  Extent32 cols = 1, rows = 1, planes = 1;
};
LaunchConfig cover(Cover items, Dim3 block);

}  // namespace kiln
