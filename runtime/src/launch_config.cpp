#include "kiln/runtime/launch_config.h"

#include <algorithm>
#include <array>
#include <bit>
#include <string>

#include "kiln/runtime/client.h"
#include "src/make_error.h"

namespace kiln {
namespace {

std::uint32_t ceil_div(std::uint32_t n, std::uint32_t d) { return n / d + (n % d != 0); }

}  // namespace

void Extent32::refuse(bool negative, std::uint64_t v) {
  if (negative) {
    throw Exception(make_error(ErrorCode::Validation, "ExtentOutOfRange",
                               "a launch extent must not be negative, and " + std::to_string(static_cast<std::int64_t>(v)) + " is"));
  }
  throw Exception(make_error(ErrorCode::Validation, "ExtentOutOfRange",
                             "a launch extent must be below 2^32, and " + std::to_string(v) +
                                 " is not; spread the items over more axes, or use automatic(n), which counts in 64 bits",
                             {.requested = v, .limit = 0xffffffffu}));
}

LaunchConfig for_num_elems(Extent32 n) {
  LaunchConfig config;
  config.block = Dim3(256u);
  config.grid = Dim3(ceil_div(n.value, 256u));
  return config;
}

LaunchConfig cover(Cover items, Dim3 block) {
  const auto blocks = [](Extent32 n, std::uint32_t b) {
    return b == 0 ? n.value : ceil_div(n.value, b);
  };  // a block of 0 is refused at launch
  LaunchConfig config;
  config.block = block;
  config.grid = Dim3(blocks(items.cols, block.x), blocks(items.rows, block.y), blocks(items.planes, block.z));
  return config;
}

LaunchConfig automatic(Extent64 n) {
  LaunchConfig config;
  if (n.value == 0) config.grid = Dim3(0u);
  config.elements = n.value;
  return config;
}

Result<Spread> spread(const Dim3& max_grid, Extent64 n) {
  std::array<std::uint64_t, 3> counts{n.value, 1, 1};
  for (int axis = 0; axis < 3; ++axis) {
    if (max_grid[axis] == 0)
      return make_error(ErrorCode::Validation, "ZeroDimension", "a grid without blocks along an axis holds none",
                        {.requested = n.value, .limit = 0});
  }
  for (std::size_t axis = 0; axis < 2 && counts[axis] > max_grid[static_cast<int>(axis)]; ++axis) {
    while (counts[axis] > max_grid[static_cast<int>(axis)]) {
      counts[axis] = counts[axis] / 2 + counts[axis] % 2;
      // 2^64 rows: more than any limit, whatever the other axes have.
      if (__builtin_mul_overflow(counts[axis + 1], std::uint64_t{2}, &counts[axis + 1])) counts[axis + 1] = ~std::uint64_t{0};
    }
  }
  if (counts[2] > max_grid.z) {
    return make_error(ErrorCode::TooManyResources, "DeviceDimensionExceeded",
                      std::to_string(n.value) + " blocks do not fit a grid of (" + std::to_string(max_grid.x) + ", " +
                          std::to_string(max_grid.y) + ", " + std::to_string(max_grid.z) + "): they would need " +
                          std::to_string(counts[2]) + " along z; launch several times, or give each block more to do",
                      {.requested = counts[2], .limit = max_grid.z});
  }
  Spread result;
  result.grid = Dim3(counts[0], counts[1], counts[2]);
  const std::uint64_t plane = counts[0] * counts[1];  // of 32 bits each
  if (__builtin_mul_overflow(plane, counts[2], &result.blocks))
    return make_error(ErrorCode::Validation, "DimensionProductOverflow", "the grid would have more blocks than 64 bits can count",
                      {.requested = n.value, .limit = 0});
  result.exact = result.blocks == n.value;
  return result;
}

Dim3 block_for_units(const DeviceProperties& device, Extent64 units) {
  const std::uint64_t warp = std::max(device.warp_size, 1u), most = device.max_threads_per_block / warp;
  std::uint64_t warps = 0;
  if (device.kind == "cpu") {
    warps = std::min<std::uint64_t>(device.workers, units.value);
  } else {
    const std::uint64_t whole = std::max<std::uint64_t>(1, units.value / warp);
    warps = std::uint64_t{1} << std::min<std::uint64_t>(3, std::bit_width(whole) - 1);
  }
  return Dim3(warp, std::max<std::uint64_t>(1, std::min(most, warps)), 1u);
}

}  // namespace kiln
