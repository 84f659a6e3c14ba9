#include "kiln/runtime/launch_config.h"

#include <doctest/doctest.h>

#include <string>

#include "kiln/runtime/client.h"

using namespace kiln;

TEST_CASE("for_num_elems makes blocks of 256 threads and enough of them, without overflow near 2^32") {
  struct Row {
    std::uint32_t n, grid;
  };
  const Row rows[] = {
      {0, 0}, {1, 1}, {255, 1}, {256, 1}, {257, 2}, {512, 2}, {1000, 4}, {1024, 4}, {1025, 5}, {1000000, 3907}, {0xffffffffu, 16777216}};
  for (const Row& row : rows) {
    CAPTURE(row.n);
    const LaunchConfig config = for_num_elems(row.n);
    CHECK(config.grid == Dim3(row.grid));
    CHECK(config.block == Dim3(256));
    CHECK(config.shared_bytes == 0);
  }
}

TEST_CASE("cover takes columns as x and rows as y") {
  CHECK(cover({1920, 1080}, {16, 16}).grid == Dim3(120, 68));
  CHECK(cover({1, 1}, {16, 16}).grid == Dim3(1, 1));
  CHECK(cover({17, 16}, {16, 16}).grid == Dim3(2, 1));
  CHECK(cover({17, 16, 9}, {4, 4, 4}).grid == Dim3(5, 4, 3));
  CHECK(cover({0, 16}, {16, 16}).grid == Dim3(0, 1));
  CHECK(cover({0xffffffffu, 1}, {16, 1}).grid == Dim3(0x10000000u, 1));
  CHECK(cover({17, 16}, {16, 8}).block == Dim3(16, 8));
}

TEST_CASE("an extent takes any host integer that fits and refuses the rest with the number") {
  CHECK(Dim3(3, std::int64_t{4}, std::uint8_t{5}) == Dim3(3u, 4u, 5u));
  CHECK(Dim3(std::uint64_t{0xffffffffu}).x == 0xffffffffu);
  const auto refused = [](auto v) {
    try {
      return Dim3(v).x, std::string("taken");
    } catch (const Exception& e) {
      CHECK(e.error().code() == ErrorCode::Validation);
      CHECK(e.error().rule() == "ExtentOutOfRange");
      return std::string(e.what());
    }
  };
  CHECK(refused(-1).find("-1") != std::string::npos);
  CHECK(refused(std::int64_t{-7}).find("-7") != std::string::npos);
  CHECK(refused(std::uint64_t{1} << 32).find("4294967296") != std::string::npos);
}

TEST_CASE("blocks are spread over the axes of a grid: x is halved, rounding up, and y doubled until they fit") {
  const Dim3 gpu(0x7fffffffu, 65535u, 65535u), cube(65535u, 65535u, 65535u);
  struct Row {
    Dim3 max;
    std::uint64_t n;
    Dim3 grid;
    bool exact;
  };
  const Row rows[] = {
      {{32, 32, 32}, 2048, {32, 32, 2}, true},
      {{48, 32, 16}, 3177, {25, 32, 4}, false},
      {cube, 65535, {65535, 1, 1}, true},
      {cube, 65536, {32768, 2, 1}, true},
      {cube, 100000, {50000, 2, 1}, true},
      {cube, 100001, {50001, 2, 1}, false},
      {gpu, 0x7fffffffu, {0x7fffffffu, 1, 1}, true},
      {gpu, std::uint64_t{1} << 31, {1u << 30, 2, 1}, true},
      {gpu, std::uint64_t{1} << 46, {1u << 30, 1u << 15, 2}, true},  // beyond 32 bits
      {gpu, 0, {0, 1, 1}, true},
      {gpu, 1, {1, 1, 1}, true},
      {{1, 1, 1}, 1, {1, 1, 1}, true},
      {{1, 4, 4}, 16, {1, 4, 4}, true},
  };
  for (const Row& row : rows) {
    CAPTURE(row.n);
    const auto spread_out = spread(row.max, row.n);
    REQUIRE(spread_out.has_value());
    CHECK(spread_out->grid == row.grid);
    CHECK(spread_out->exact == row.exact);
    CHECK(spread_out->blocks == std::uint64_t{row.grid.x} * row.grid.y * row.grid.z);
    CHECK(spread_out->blocks >= row.n);
  }
}

TEST_CASE("what does not fit a grid is an error with the axis' numbers, whatever overflows on the way") {
  const auto refused = [](Dim3 max, std::uint64_t n) {
    const auto result = spread(max, n);
    REQUIRE_FALSE(result.has_value());
    return result.error();
  };
  const Error z = refused({32, 32, 32}, 32 * 32 * 32 + 1);
  CHECK(z.code() == ErrorCode::TooManyResources);
  CHECK(z.rule() == "DeviceDimensionExceeded");
  CHECK(z.data().requested == 64);
  CHECK(z.data().limit == 32);
  CHECK(refused({65535, 65535, 65535}, std::uint64_t{1} << 48).rule() == "DeviceDimensionExceeded");
  CHECK(refused({1, 1, 1}, ~std::uint64_t{0}).rule() == "DeviceDimensionExceeded");
  CHECK(refused({0x80000000u, 0x80000000u, 0x80000000u}, ~std::uint64_t{0}).rule() == "DimensionProductOverflow");
  CHECK(refused({32, 0, 32}, 5).rule() == "ZeroDimension");
  CHECK(refused({0, 1, 1}, 0).code() == ErrorCode::Validation);
}

TEST_CASE("random counts spread over random grids hold at least as many and fit, or are refused rightly") {
  std::uint64_t state = 88172645463325252ull;
  const auto next = [&] {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return state;
  };
  int fitted = 0, refused = 0;
  for (int i = 0; i < 20000; ++i) {
    const Dim3 max(1 + next() % (1u << (next() % 17)), 1 + next() % (1u << (next() % 17)), 1 + next() % (1u << (next() % 17)));
    const std::uint64_t n = next() >> (next() % 64), room = std::uint64_t{max.x} * max.y * max.z;
    const auto result = spread(max, n);
    CAPTURE(n);
    if (result.has_value()) {
      ++fitted;
      const Dim3& g = result->grid;
      if (g.x > max.x || g.y > max.y || g.z > max.z || result->blocks < n || result->exact != (result->blocks == n))
        FAIL_CHECK("does not fit");
    } else {
      ++refused;
      if (n <= room / 8) FAIL_CHECK("refused, and each axis was at least half used");  // halving leaves an axis more than half full
    }
  }
  CHECK(fitted > 2000);
  CHECK(refused > 2000);
}

TEST_CASE("the block for a number of units: whole warps, as many as the units ask for and the device has") {
  DeviceProperties gpu;
  gpu.kind = "cuda";
  gpu.warp_size = 32;
  gpu.max_threads_per_block = 1024;
  struct Row {
    std::uint64_t units;
    std::uint32_t warps;
  };
  for (const Row& row :
       {Row{0, 1}, {1, 1}, {63, 1}, {64, 2}, {127, 2}, {128, 4}, {255, 4}, {256, 8}, {100000, 8}, {~std::uint64_t{0}, 8}}) {
    CAPTURE(row.units);
    CHECK(block_for_units(gpu, row.units) == Dim3(32u, row.warps, 1u));
  }
  gpu.max_threads_per_block = 128;
  CHECK(block_for_units(gpu, 127) == Dim3(32, 2));
  CHECK(block_for_units(gpu, 128) == Dim3(32, 4));
  CHECK(block_for_units(gpu, 1000) == Dim3(32, 4));
  gpu.max_threads_per_block = 16;
  CHECK(block_for_units(gpu, 1000) == Dim3(32, 1));  // which the launch refuses
  DeviceProperties cpu;
  cpu.kind = "cpu";
  cpu.workers = 6;
  CHECK(block_for_units(cpu, 0) == Dim3(32, 1));
  CHECK(block_for_units(cpu, 4) == Dim3(32, 4));
  CHECK(block_for_units(cpu, 100) == Dim3(32, 6));
}

TEST_CASE("an automatic configuration is a number of threads; none of them is a grid that does nothing") {
  CHECK(automatic(1000).elements == 1000);
  CHECK(automatic(std::uint64_t{1} << 40).elements == std::uint64_t{1} << 40);
  CHECK(automatic(0).elements == 0);
  CHECK(automatic(0).grid.x == 0);
  CHECK_THROWS_AS(automatic(-1), Exception);
}
