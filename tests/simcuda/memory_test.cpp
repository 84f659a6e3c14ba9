#include "simcuda/memory.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

using namespace kiln::simcuda;

namespace {
constexpr std::uint64_t kH200 = std::uint64_t{141} << 30;
}

TEST_CASE("an allocation is aligned, bounded to the byte, and not written at first") {
  Memory memory(kH200);
  const auto a = memory.allocate(1000);
  REQUIRE(a.has_value());
  CHECK(*a % 512 == 0);
  CHECK(memory.access(*a, 4, Access::Read).fault == MemoryFault::Unwritten);
  CHECK(memory.access(*a, 4, Access::Read).host != nullptr);
  CHECK(memory.access(*a, 4, Access::Write).fault == MemoryFault::None);
  CHECK(memory.access(*a, 4, Access::Read).fault == MemoryFault::None);
  CHECK(memory.access(*a, 8, Access::Read).fault == MemoryFault::Unwritten);
  CHECK(memory.access(*a + 996, 4, Access::Write).fault == MemoryFault::None);
  CHECK(memory.access(*a + 1000, 4, Access::Write).fault == MemoryFault::OutOfRange);
  CHECK(memory.access(*a + 992, 16, Access::Write).fault == MemoryFault::OutOfRange);
  CHECK(memory.access(*a - 4, 4, Access::Write).fault == MemoryFault::OutOfRange);
  CHECK(memory.access(*a + 2, 4, Access::Write).fault == MemoryFault::Misaligned);
  CHECK(memory.access(0, 4, Access::Read).fault == MemoryFault::OutOfRange);
  CHECK(memory.access(*a + 4, 4, Access::Atomic).fault == MemoryFault::Unwritten);
  CHECK(memory.access(*a + 4, 4, Access::Atomic).fault == MemoryFault::None);
}

TEST_CASE("freed memory is known as freed, its addresses are not given out again at once, and its number is told") {
  Memory memory(kH200);
  const auto a = memory.allocate(1024);
  const auto b = memory.allocate(1024);
  REQUIRE(a.has_value());
  REQUIRE(b.has_value());
  CHECK(*b >= *a + 1024 + 512);
  CHECK(memory.describe(*a + 1028) == memory.describe(*a + 1028));
  CHECK(memory.describe(*a + 1028).find("4 bytes behind the end of an allocation of 1024 bytes") != std::string::npos);
  CHECK(memory.describe(*a + 1028).find("number 1") != std::string::npos);
  CHECK(memory.free(*a));
  CHECK_FALSE(memory.free(*a));
  CHECK_FALSE(memory.free(*b + 512));
  CHECK(memory.access(*a + 8, 4, Access::Read).fault == MemoryFault::Freed);
  CHECK(memory.describe(*a + 8).find("8 bytes into a freed allocation of 1024 bytes") != std::string::npos);
  for (int i = 0; i < 100; ++i) CHECK(memory.allocate(1024) != a);
}

TEST_CASE("memory is as large as told, and none of it is committed before it is touched") {
  Memory memory(kH200);
  CHECK(memory.total_bytes() == kH200);
  const auto all = memory.allocate(kH200);
  REQUIRE(all.has_value());
  CHECK(memory.free_bytes() == 0);
  CHECK_FALSE(memory.allocate(1).has_value());
  CHECK(memory.access(*all + kH200 - 8, 8, Access::Write).fault == MemoryFault::None);
  CHECK(memory.access(*all + kH200, 8, Access::Write).fault == MemoryFault::OutOfRange);
  CHECK(memory.access(*all + kH200 / 2, 8, Access::Read).fault == MemoryFault::Unwritten);
  CHECK(memory.free(*all));
  CHECK(memory.free_bytes() == kH200);
}

TEST_CASE("when addresses run out, those of freed allocations come again, unwritten") {
  Memory memory(std::uint64_t{16} << 20);
  std::uint64_t first = 0;
  bool again = false;
  for (int i = 0; i < 40; ++i) {
    const auto a = memory.allocate(std::uint64_t{10} << 20);
    REQUIRE(a.has_value());
    CHECK(memory.access(*a + 4096, 4, Access::Read).fault == MemoryFault::Unwritten);
    CHECK(memory.access(*a + 4096, 4, Access::Write).fault == MemoryFault::None);
    if (i == 0) first = *a;
    again = again || (i > 0 && *a == first);
    CHECK(memory.free(*a));
  }
  CHECK(again);
}

TEST_CASE("ranges of the host are of any alignment and may write all of an allocation at once") {
  Memory memory(kH200);
  const auto a = memory.allocate(100);
  REQUIRE(a.has_value());
  const auto part = memory.range(*a + 3, 50, Access::Write);
  REQUIRE(part.host != nullptr);
  std::memset(part.host, 7, 50);
  CHECK(memory.range(*a + 3, 50, Access::Read).fault == MemoryFault::None);
  CHECK(memory.range(*a + 3, 51, Access::Read).fault == MemoryFault::Unwritten);
  CHECK(memory.range(*a + 50, 51, Access::Write).fault == MemoryFault::OutOfRange);
  CHECK(memory.range(*a, 100, Access::Write).fault == MemoryFault::None);
  CHECK(memory.range(*a, 100, Access::Read).fault == MemoryFault::None);
  const auto w = memory.window(*a + 5);
  REQUIRE(w.has_value());
  CHECK(w->begin == *a);
  CHECK(w->end == *a + 100);
  CHECK(w->written == nullptr);
}

TEST_CASE("mapped host memory is accessed at its own address") {
  Memory memory(kH200);
  std::vector<std::uint32_t> data(100, 5);
  CHECK(memory.access(reinterpret_cast<std::uint64_t>(data.data()), 4, Access::Read).fault == MemoryFault::OutOfRange);
  CHECK(memory.map_host(data.data(), 400));
  CHECK_FALSE(memory.map_host(data.data() + 10, 4));
  const auto place = memory.access(reinterpret_cast<std::uint64_t>(data.data() + 10), 4, Access::Read);
  CHECK(place.host == reinterpret_cast<std::byte*>(data.data() + 10));
  CHECK(place.fault == MemoryFault::None);
  CHECK(memory.find(reinterpret_cast<std::uint64_t>(data.data() + 10))->host);
  CHECK(memory.access(reinterpret_cast<std::uint64_t>(data.data() + 100), 4, Access::Read).fault == MemoryFault::OutOfRange);
  CHECK(memory.unmap_host(data.data()));
  CHECK(memory.access(reinterpret_cast<std::uint64_t>(data.data()), 4, Access::Read).fault == MemoryFault::OutOfRange);
}
