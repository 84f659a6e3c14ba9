// Memory as clients see it, on the CPU device and over the simulated driver: layouts, reports, moving, late mapping, what it costs to be
// wrong.
#include <doctest/doctest.h>

#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "cpu/cpu_device.h"
#include "kiln/runtime/buffer.h"
#include "kiln/runtime/memory.h"
#include "kiln/runtime/modes.h"
#include "runtime/fake_kernels.h"
#include "runtime/held.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// A server of the test's own on each device.
Client each_own() {
  std::shared_ptr<Server> server;
  SUBCASE("cpu") { server = rt::make_server(rt::make_cpu_device({.workers = 2, .arch = {}}).value()); }
  SUBCASE("cuda sim") { server = make_sim_server(); }
  REQUIRE(server != nullptr);
  return Client(server);
}
rt::LocalServer& local(const Client& client) { return static_cast<rt::LocalServer&>(client.server()); }

std::vector<u32> numbers(std::size_t n, u32 first = 0) {
  std::vector<u32> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}
MemoryPools pools(std::vector<PoolConfig> list) {
  MemoryPools layout;
  layout.pools = std::move(list);
  return layout;
}

}  // namespace

TEST_CASE("a report of memory is a table for people: a line for each pool, one for all, the peaks") {
  const Client client = each_own();
  REQUIRE(install_memory_pools(client, pools({{.kind = PoolKind::Sliced, .page_bytes = 1 << 20, .cap = 8 << 20}})).has_value());
  auto here = Buffer<u32>::from_host(client, numbers(1000)).value();
  const MemoryReport report = memory_report(client).value();
  const std::string text = report.text();
  std::vector<std::string> lines;
  for (std::size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    lines.push_back(text.substr(at, end - at));
  }
  REQUIRE(lines.size() == report.pools.size() + 3);
  CHECK(lines[0].starts_with("pool"));
  for (std::size_t i = 1; i + 1 < lines.size(); ++i) CHECK(lines[i].size() == lines[0].size());  // columns
  std::string sliced;
  for (const std::string& line : lines)
    if (line.starts_with("sliced")) sliced += line;
  for (const char* number : {" 4000 ", " 1048576 ", " 8388608"}) CHECK_MESSAGE(sliced.find(number) != std::string::npos, text);
  CHECK(lines[lines.size() - 2].starts_with("all"));
  CHECK(lines[lines.size() - 2].find(" 4000 ") != std::string::npos);
  CHECK(lines.back().find(std::to_string(report.bytes_reserved_peak) + " bytes") != std::string::npos);
}

TEST_CASE("reports tell what lives, for the device and for the stream it was allocated for") {
  const Client client = each_own();
  REQUIRE(install_memory_pools(client, pools({{.kind = PoolKind::Sliced, .page_bytes = 1 << 20}})).has_value());
  const Stream own = client.stream();
  CHECK(memory_report(client, own).error().code() == ErrorCode::NotFound);
  auto here = Buffer<u32>::from_host(client, numbers(1000)).value();
  auto there = allocate(own, 5000).value();
  const MemoryReport all = memory_report(client).value();
  CHECK(all.total.allocations == 2);
  CHECK(all.total.bytes_in_use == 9000);
  CHECK(all.total.bytes_reserved == 1 << 20);
  CHECK(memory_report(client, own).value().total.bytes_in_use == 5000);
  CHECK(memory_report(client, client.default_stream()).value().total.bytes_in_use == 4000);
  there.reset();
  CHECK(memory_report(client, own).value().total.bytes_in_use == 0);
  CHECK(memory_report(client, own).value().bytes_in_use_peak == 5000);
  CHECK(memory_report(client).value().bytes_in_use_peak == 9000);
  const Client other = Client::open("cpu").value();
  CHECK(memory_report(client, other.stream()).error().code() == ErrorCode::ForeignHandle);
  {
    const PersistentMemory window(client);
    there = rt::allocate(client, 300).value();
    CHECK(memory_report(client).value().pools.back().usage.bytes_in_use == 300);
  }
  there.reset();
  here = Buffer<u32>::from_host(client, {}).value();
  CHECK(memory_cleanup(client).has_value());
  CHECK(memory_report(client).value().total == MemoryUsage{});
  CHECK(install_memory_pools(client, pools({})).error().rule() == "EmptyPoolList");
}

TEST_CASE("a cleanup moves what lives in an earlier layout, with its bytes and its failures; what somebody looks at stays") {
  const Client client = each_own();
  REQUIRE(install_memory_pools(client, pools({{.kind = PoolKind::Sliced, .page_bytes = 1 << 20}})).has_value());
  const Stream stream = client.stream();
  std::vector<Buffer<u32>> all;
  for (u32 i = 0; i < 20; ++i) all.push_back(Buffer<u32>::from_host(client, numbers(1000 + i, i)).value());
  rt::claim({all[3].binding().memory, {40, 80}}, Error(ErrorCode::Generic, "spoiled"));
  REQUIRE(local(client).pin_address(all[5].binding()).has_value());
  const void* const fixed = all[5].binding().memory->storage->data;
  const void* const before = all[6].binding().memory->storage->data;
  REQUIRE(install_memory_pools(client, MemoryPools::exclusive_pages()).has_value());
  CHECK(memory_report(client).value().pools[0].outdated);
  // Work is under way on it, and more comes.
  REQUIRE(all[7].write(stream, numbers(1007, 70)).has_value());
  const auto freed = memory_cleanup(client);
  REQUIRE_MESSAGE(freed.has_value(), freed.error().text());
  REQUIRE(all[8].write(stream, numbers(1008, 80)).has_value());
  CHECK(all[5].binding().memory->storage->data == fixed);
  CHECK(all[6].binding().memory->storage->data != before);
  for (u32 i = 0; i < 20; ++i) {
    CAPTURE(i);
    if (i == 3) {
      CHECK(all[i].read().error().root().data().message == "spoiled");
      CHECK(all[i].slice(20, 100).read().value() == numbers(100, i + 20));
      continue;
    }
    CHECK(all[i].read().value() == numbers(1000 + i, i == 7 ? 70 : i == 8 ? 80 : i));
  }
  const MemoryReport report = memory_report(client).value();
  CHECK(report.pools[0].outdated);
  CHECK(report.pools[0].usage.allocations == 1);  // the one whose address is known
  CHECK(report.pools[1].usage.allocations == 19);
  all.clear();
  CHECK(memory_cleanup(client).has_value());
  CHECK(memory_report(client).value().total == MemoryUsage{});
  CHECK(memory_report(client).value().pools.size() == 2);  // the layout and the persistent one
}

TEST_CASE("a cleanup while launches are dropped moves nothing to memory that is only counted, and every byte stays") {
  const Client client = each_own();
  std::vector<Buffer<u32>> all;
  for (u32 i = 0; i < 20; ++i) all.push_back(Buffer<u32>::from_host(client, numbers(1000 + i, i)).value());
  REQUIRE(install_memory_pools(client, MemoryPools::exclusive_pages()).has_value());
  {
    local(client).memory().enter_lazy();  // as what every thread allocates is only counted
    const auto pass = ProcessModeOverride::open(ProcessMode::CompileOnly).value();
    const auto counted = Buffer<u32>::uninitialised(client, 100).value();
    CHECK(memory_cleanup(client).has_value());
    for (u32 i = 0; i < 20; ++i) CHECK(all[i].read().value() == numbers(1000 + i, i));
    local(client).memory().leave_lazy();
  }
  CHECK(memory_cleanup(client).has_value());  // now they are moved
  for (u32 i = 0; i < 20; ++i) CHECK(all[i].read().value() == numbers(1000 + i, i));
  for (const PoolReport& pool : memory_report(client).value().pools) CHECK_FALSE(pool.outdated);
}

TEST_CASE("memory may be moved while threads write, copy and read it") {
  const Client client = each_own();
  std::atomic<bool> over{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      const Stream stream = client.stream();
      auto a = Buffer<u32>::from_host(client, numbers(3000, t)).value(), b = Buffer<u32>::zeroed(client, 3000).value();
      for (u32 i = 0; i < 60; ++i) {
        if (!a.write(stream, numbers(3000, i * t)).has_value()) ++wrong;
        if (!rt::copy(stream, b.binding(), a.binding()).has_value()) ++wrong;
        if (b.read().value() != numbers(3000, i * t)) ++wrong;
      }
    });
  }
  std::thread mover([&] {
    for (u32 i = 0; !over; ++i) {
      const auto layout = i % 2 == 0 ? MemoryPools::exclusive_pages() : pools({{.kind = PoolKind::Sliced, .page_bytes = 1 << 18}});
      if (!install_memory_pools(client, layout).has_value() || !memory_cleanup(client).has_value()) ++wrong;
    }
  });
  for (std::thread& t : threads) t.join();
  over = true;
  mover.join();
  CHECK(wrong == 0);
  CHECK(local(client).moves() > 0);
}

TEST_CASE("a pool with a cap gives back what nobody uses before it refuses, names the sizes, and goes on") {
  const Client client = each_own();
  constexpr std::uint64_t kCap = std::uint64_t{10} << 20;
  REQUIRE(install_memory_pools(client, pools({{PoolKind::Exclusive, kAnySize, 0, kCap, 0}})).has_value());
  const auto first = rt::allocate(client, kCap * 3 / 10).value();
  auto second = rt::allocate(client, kCap * 3 / 10).value();
  second.reset();
  REQUIRE(client.sync().has_value());
  const auto large = rt::allocate(client, kCap * 6 / 10);
  CHECK(large.has_value());
  const auto too_much = rt::allocate(client, kCap * 2 / 10);
  REQUIRE_FALSE(too_much.has_value());
  CHECK(too_much.error().code() == ErrorCode::PoolCapacityExceeded);
  CHECK(too_much.error().text().find(std::to_string(kCap * 2 / 10)) != std::string::npos);
  CHECK(too_much.error().text().find(std::to_string(kCap)) != std::string::npos);
  CHECK(rt::allocate(client, kCap * 2).error().code() == ErrorCode::PageSizesExhausted);  // no pool may ever have so much
  CHECK(rt::allocate(client, kCap / 20).has_value());
  CHECK(memory_report(client).value().pools.at(0).usage.bytes_reserved <= kCap);
  CHECK(client.sync().has_value());
}

TEST_CASE("memory of a dry run is taken when it is first really used, and a lack of it then is a failure of its bytes") {
  const Client client = each_own();
  local(client).memory().enter_lazy();
  auto x = Buffer<u32>::uninitialised(client, 1000).value(), y = Buffer<u32>::uninitialised(client, 1000).value();
  local(client).memory().leave_lazy();
  CHECK(memory_report(client).value().total.bytes_in_use == 8000);
  CHECK(memory_report(client).value().total.bytes_reserved == 0);
  REQUIRE(x.write(numbers(1000, 7)).has_value());
  CHECK(memory_report(client).value().total.bytes_reserved > 0);
  REQUIRE(rt::copy(client.default_stream(), y.binding(), x.binding()).has_value());
  CHECK(y.read().value() == numbers(1000, 7));
}

TEST_CASE("a buffer that is dropped while another stream still reads it is not overwritten, twenty times of twenty") {
  const Client client = each_own();
  const Stream s1 = client.stream(), s2 = client.stream();
  const std::size_t n = 1 << 16;
  for (int run = 0; run < 20; ++run) {
    auto b = Buffer<u32>::uninitialised(client, n).value();
    std::optional<Held> held;
    {
      auto a = Buffer<u32>::over(client, allocate(s1, n * 4).value(), {n}, 0).value();
      REQUIRE(a.write(s1, std::vector<u32>(n, 3)).has_value());
      held.emplace(s2);  // so that the copy comes after all that follows
      REQUIRE(rt::copy(s2, b.binding(), a.binding()).has_value());
    }
    auto c = Buffer<u32>::over(client, allocate(s1, n * 4).value(), {n}, 0).value();
    REQUIRE(c.write(s1, std::vector<u32>(n, 7)).has_value());
    held->open();
    CHECK(b.read(s1).value() == std::vector<u32>(n, 3));
    CHECK(c.read(s2).value() == std::vector<u32>(n, 7));
  }
}

TEST_CASE("random steps on buffers, layouts and cleanups keep every byte") {
  const Client client = each_own();
  std::mt19937 random(11);
  const Stream streams[] = {client.stream(), client.stream(), client.default_stream()};
  std::vector<std::pair<Buffer<u32>, u32>> live;
  for (int i = 0; i < 600; ++i) {
    const auto pick = random() % 100;
    if (live.empty() || (pick < 35 && live.size() < 40)) {
      const u32 n = 1 + random() % 4000, first = random();
      live.emplace_back(Buffer<u32>::from_host(client, numbers(n, first)).value(), first);
    } else if (pick < 60) {
      std::swap(live[random() % live.size()], live.back());
      live.pop_back();
    } else if (pick < 80) {
      auto& [buffer, first] = live[random() % live.size()];
      first = random();
      REQUIRE(buffer.write(streams[random() % 3], numbers(buffer.size(), first)).has_value());
    } else if (pick < 94) {
      auto& [buffer, first] = live[random() % live.size()];
      REQUIRE(buffer.read(streams[random() % 3]).value() == numbers(buffer.size(), first));
    } else if (pick < 97) {
      const auto layout = random() % 2 == 0 ? MemoryPools::exclusive_pages() : MemoryPools::sub_slices(client.properties());
      REQUIRE(install_memory_pools(client, layout).has_value());
    } else {
      REQUIRE(memory_cleanup(client).has_value());
    }
  }
  for (auto& [buffer, first] : live) CHECK(buffer.read().value() == numbers(buffer.size(), first));
  CHECK(memory_report(client).value().total.allocations == live.size());
  live.clear();
  REQUIRE(memory_cleanup(client).has_value());
  CHECK(memory_report(client).value().total == MemoryUsage{});
}
