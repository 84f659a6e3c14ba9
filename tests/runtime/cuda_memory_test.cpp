// Memory, transfers and contexts of the CUDA device, over the simulated driver.
#include <doctest/doctest.h>

#include <atomic>
#include <numeric>
#include <thread>

#include "kiln/runtime/buffer.h"
#include "kiln/runtime/memory.h"
#include "src/local_server.h"
#include "support/sim.h"

using namespace kiln;
using test::kSimH200;
using test::kSimT4;
using test::make_sim_server;
using test::sim_driver;

namespace {

std::vector<u32> numbers(std::size_t n, u32 first = 0) {
  std::vector<u32> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}
bool says(const Error& error, const std::string& what) { return error.text().find(what) != std::string::npos; }

}  // namespace

TEST_CASE("the simulated driver opens, and each of its devices says what it is") {
  REQUIRE_MESSAGE(sim_driver().ok(), sim_driver().sentence);
  const Client h200 = test::sim_client(kSimH200), t4 = test::sim_client(kSimT4);
  CHECK(h200.properties().kind == "cuda");
  CHECK(h200.properties().name.find("H200") != std::string::npos);
  CHECK(h200.properties().arch == "sm_90");
  CHECK(h200.properties().compute_capability == 90);
  CHECK(h200.properties().clusters);
  CHECK(h200.properties().max_dynamic_shared == 227 * 1024);
  CHECK(h200.properties().workers == 132);
  CHECK(t4.properties().arch == "sm_75");
  CHECK(t4.properties().max_dynamic_shared == 64 * 1024);
  CHECK_FALSE(t4.properties().clusters);
  CHECK(t4.properties().memory_bytes > (std::uint64_t{14} << 30));
}

TEST_CASE("after a simulated device was poisoned the next one who asks gets devices that are well") {
  for (const int ordinal : {kSimH200, kSimT4}) {
    CAPTURE(ordinal);
    {
      const Client client = test::sim_client(ordinal);
      const test::SimScript script(R"({"calls": [{"name": "cuMemAlloc", "code": "CUDA_ERROR_ILLEGAL_ADDRESS", "sticky": true}]})");
      const auto lost = Buffer<u32>::zeroed(client, 1 << 22);
      REQUIRE_FALSE(lost.has_value());
      CHECK(lost.error().is_device_poisoned());
      CHECK_FALSE(client.sync().has_value());
    }
    // Whichever is asked for first, none of them is taken away by the second question.
    const Client h200 = test::sim_client(kSimH200), t4 = test::sim_client(kSimT4);
    for (const Client& client : {h200, t4}) {
      CHECK(client.sync().has_value());
      CHECK(Buffer<u32>::from_host(client, numbers(1000)).value().read().value() == numbers(1000));
    }
  }
}

TEST_CASE("what is written comes back, of any size, also larger than what is staged at a time") {
  const Client client(make_sim_server());
  for (const std::size_t n : {1u, 3u, 1000u, 20'000'003u}) {
    const std::vector<u32> host = numbers(n);
    const auto buffer = Buffer<u32>::from_host(client, host);
    REQUIRE(buffer.has_value());
    CHECK(buffer->read().value() == host);
  }
  CHECK(Buffer<u32>::from_host(client, {}).value().read().value().empty());
  CHECK(Buffer<u32>::zeroed(client, 1000).value().read().value() == std::vector<u32>(1000, 0));
}

TEST_CASE("a copy on the device reads what was written before and is read by what comes after, on other streams too") {
  const Client client(make_sim_server());
  const test::SimScript slow(R"({"slow": [{"stream": 1, "ms": 20}]})");
  const auto host = numbers(5000);
  auto a = Buffer<u32>::from_host(client, host).value();
  auto b = Buffer<u32>::zeroed(client, 5000).value();
  const Stream s1 = client.stream(), s2 = client.stream();
  for (u32 round = 1; round < 4; ++round) {
    CHECK(a.write(s1, numbers(5000, round)).has_value());
    CHECK(rt::copy(s2, b.binding(), a.binding()).has_value());
    CHECK(b.read(s1).value() == numbers(5000, round));
  }
}

TEST_CASE("after every call the thread's current context is what it was") {
  const cuda::DriverEntries& call = sim_driver().call;
  cuda::CUdevice device = 0;
  cuda::CUcontext other = nullptr, now = nullptr;
  REQUIRE(call.cuDeviceGet(&device, kSimT4) == cuda::CUDA_SUCCESS);
  REQUIRE(call.cuDevicePrimaryCtxRetain(&other, device) == cuda::CUDA_SUCCESS);
  REQUIRE(call.cuCtxPushCurrent(other) == cuda::CUDA_SUCCESS);
  {
    const Client client(make_sim_server(kSimH200));
    auto buffer = Buffer<u32>::from_host(client, numbers(100)).value();
    CHECK(buffer.read().value() == numbers(100));
    CHECK(client.sync().has_value());
    call.cuCtxGetCurrent(&now);
    CHECK((now == other));
  }
  call.cuCtxGetCurrent(&now);
  CHECK((now == other));
  call.cuCtxPopCurrent(&now);
  call.cuDevicePrimaryCtxRelease(device);
}

TEST_CASE("any thread may use the device, each its own at the same time, and none is left with a context") {
  const Client clients[] = {Client(make_sim_server(kSimH200)), Client(make_sim_server(kSimT4))};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      const Client& client = clients[t % 2];
      for (u32 i = 0; i < 30; ++i) {
        auto buffer = Buffer<u32>::from_host(client, numbers(300, i + t));
        if (!buffer.has_value() || buffer->read().value() != numbers(300, i + t)) ++wrong;
      }
      cuda::CUcontext now = nullptr;
      sim_driver().call.cuCtxGetCurrent(&now);
      if (now != nullptr) ++wrong;
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("all that a device took is given back when it goes") {
  const auto before = std::array{test::sim_count("contexts"), test::sim_count("allocations"), test::sim_count("pinned"),
                                 test::sim_count("streams"), test::sim_count("events")};
  {
    const Client client(make_sim_server());
    auto buffer = Buffer<u32>::from_host(client, numbers(100000)).value();
    CHECK(buffer.read(client.stream()).value().size() == 100000);
    CHECK(test::sim_count("streams") > before[3]);
  }
  CHECK(std::array{test::sim_count("contexts"), test::sim_count("allocations"), test::sim_count("pinned"), test::sim_count("streams"),
                   test::sim_count("events")} == before);
}

TEST_CASE("memory that is dropped while another stream still reads it is not overwritten") {
  const Client client(make_sim_server());
  const test::SimScript slow(R"({"slow": [{"ms": 5}]})");
  const Stream s1 = client.stream(), s2 = client.stream();
  const std::size_t n = 1 << 16;
  for (int run = 0; run < 10; ++run) {
    auto b = Buffer<u32>::uninitialised(client, n).value();
    {
      auto a = Buffer<u32>::uninitialised(client, n).value();
      REQUIRE(a.write(s1, std::vector<u32>(n, 3)).has_value());
      REQUIRE(rt::copy(s2, b.binding(), a.binding()).has_value());
    }
    auto c = Buffer<u32>::uninitialised(client, n).value();  // a's bytes, as likely as not
    REQUIRE(c.write(s1, std::vector<u32>(n, 7)).has_value());
    CHECK(b.read(s1).value() == std::vector<u32>(n, 3));
    CHECK(c.read(s2).value() == std::vector<u32>(n, 7));
  }
}

TEST_CASE("memory that is used again and again is asked of the driver once") {
  const Client client(make_sim_server());
  const auto allocations = [&] { return test::sim_count("allocations"); };
  { auto first = Buffer<u32>::zeroed(client, 1000).value(); }
  const auto before = allocations();
  for (int i = 0; i < 50; ++i) {
    auto again = Buffer<u32>::from_host(client, numbers(1000)).value();
    CHECK(again.read().value() == numbers(1000));
  }
  CHECK(allocations() == before);
}

TEST_CASE("cached blocks are given back before memory counts as used up, and what cannot fit fails once with the numbers") {
  // All that is not in use may be kept, so that the cache is what stands in the way.
  const Client client(make_sim_server(test::kSimTiny, {.pool_limit = ~std::uint64_t{0}}));
  std::size_t free_bytes = client.properties().memory_bytes;
  const auto part = [&](double share) { return static_cast<std::uint64_t>(static_cast<double>(free_bytes) * share); };
  const auto allocations = test::sim_count("allocations");
  auto first = rt::allocate(client, part(0.3)).value();
  auto second = rt::allocate(client, part(0.3)).value();
  second.reset();
  CHECK(test::sim_count("allocations") == allocations + 2);  // kept
  const auto large = rt::allocate(client, part(0.6));
  CHECK(large.has_value());
  CHECK(test::sim_count("allocations") == allocations + 2);
  const auto impossible = rt::allocate(client, free_bytes * 2);
  REQUIRE_FALSE(impossible.has_value());
  CHECK(impossible.error().code() == ErrorCode::BufferTooBig);
  CHECK(says(impossible.error(), std::to_string(free_bytes * 2)));
  const auto too_much = rt::allocate(client, part(0.5));
  REQUIRE_FALSE(too_much.has_value());
  CHECK(too_much.error().code() == ErrorCode::OutOfMemory);
  CHECK(too_much.error().may_succeed_after_reclaim());
  for (const std::string& word : {std::to_string(part(0.5)), std::string("free:"), std::string("pooled:")})
    CHECK(says(too_much.error(), word));
  CHECK(rt::allocate(client, 1 << 16).has_value());
  CHECK(client.sync().has_value());
}

TEST_CASE("no more unused memory is kept than the limit says") {
  auto server = make_sim_server(kSimH200, {.pool_limit = 1 << 20});
  const Client client(server);
  REQUIRE(install_memory_pools(client, MemoryPools::exclusive_pages()).has_value());
  const auto before = test::sim_count("allocations");
  for (int round = 0; round < 3; ++round) {
    std::vector<Memory> all;
    for (int i = 0; i < 8; ++i) all.push_back(rt::allocate(client, 1 << 18).value());
    CHECK(test::sim_count("allocations") >= before + 8);
    all.clear();
    CHECK(memory_report(client).value().total.bytes_reserved <= 1 << 20);
  }
  CHECK(memory_cleanup(client).has_value());
  CHECK(test::sim_count("allocations") == before);
}

TEST_CASE("the driver gets memory back only when nobody uses it any more") {
  // Nothing that is not in use is kept, and the driver counts memory that it gets too early as the device's end.
  const Client client(make_sim_server(kSimH200));
  MemoryPools layout;
  layout.pools.push_back({.kind = PoolKind::Direct});
  REQUIRE(install_memory_pools(client, layout).has_value());
  const auto before = test::sim_count("allocations");
  const test::SimScript strict(R"({"free_in_use_is_fault": true, "slow": [{"ms": 1}]})");
  const Stream s1 = client.stream(), s2 = client.stream();
  for (u32 round = 0; round < 70; ++round) {
    const auto source = Buffer<u32>::from_host(client, numbers(5000, round)).value();
    auto kept = Buffer<u32>::uninitialised(client, 5000).value();
    {
      const auto between = Buffer<u32>::uninitialised(client, 5000).value();
      REQUIRE(rt::copy(s1, between.binding(), source.binding()).has_value());
      REQUIRE(rt::copy(s2, kept.binding(), between.binding()).has_value());
    }
    CHECK(kept.read().value() == numbers(5000, round));
  }
  CHECK(test::sim_count("allocations") < before + 140);
  CHECK(client.sync().has_value());
}
