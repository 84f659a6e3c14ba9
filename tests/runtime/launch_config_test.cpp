#include "kiln/runtime/launch_config.h"

#include <doctest/doctest.h>

#include <string>

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
