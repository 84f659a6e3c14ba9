// Order and overlap of work on the CPU device, with kernels that the test holds back.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "kiln/runtime/graph.h"
#include "runtime/fake_kernels.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("a launch returns before its kernel ends, and a read waits for it") {
  FakeServer s;
  Gate gate;
  Buffer<u32> y = s.buffer({0, 0, 0});
  const Stream stream = s.client.stream();
  REQUIRE(run(stream, s.gated, y.arg(), scalar(5), scalar64(gate.address())).has_value());
  gate.await_entered();
  std::atomic<bool> read_done{false};
  std::thread reader([&] {
    CHECK(y.read().value() == std::vector<u32>{5, 5, 5});
    read_done = true;
  });
  CHECK_FALSE(read_done.load());
  gate.open = true;
  reader.join();
}

TEST_CASE("work of one stream runs in order; work of another stream does not wait for it") {
  FakeServer s;
  Gate gate;
  Buffer<u32> x = s.buffer({0}), y = s.buffer({0});
  const Stream a = s.client.stream(), b = s.client.stream();
  REQUIRE(run(a, s.gated, x.arg(), scalar(1), scalar64(gate.address())).has_value());
  REQUIRE(run(a, s.add, x.arg(), scalar(10)).has_value());
  REQUIRE(run(b, s.fill, y.arg(), scalar(7)).has_value());
  CHECK(y.read(b).value() == std::vector<u32>{7});  // while the kernel of `a` stands at its gate
  gate.open = true;
  CHECK(x.read(a).value() == std::vector<u32>{11});
}

TEST_CASE("a buffer used on several streams orders them: read after write, write after read, write after write") {
  FakeServer s;
  const Stream a = s.client.stream(), b = s.client.stream(), c = s.client.stream();
  SUBCASE("read after write") {
    Gate gate;
    Buffer<u32> x = s.buffer({0}), y = s.buffer({0});
    REQUIRE(run(a, s.gated, x.arg(), scalar(3), scalar64(gate.address())).has_value());
    REQUIRE(run(b, s.copy, x.arg(), y.arg()).has_value());
    gate.await_entered();
    gate.open = true;
    CHECK(y.read(c).value() == std::vector<u32>{3});
  }
  SUBCASE("a host write after a kernel that writes") {
    Gate gate;
    Buffer<u32> x = s.buffer({0, 0, 0, 0});
    REQUIRE(run(a, s.gated, x.arg(), scalar(3), scalar64(gate.address())).has_value());
    REQUIRE(x.write(b, {9, 9, 9, 9}).has_value());  // returns though the kernel holds
    gate.open = true;
    CHECK(x.read(c).value() == std::vector<u32>{9, 9, 9, 9});
  }
  SUBCASE("a chain over many streams") {
    Gate gate;
    Buffer<u32> x = s.buffer({0});
    REQUIRE(run(a, s.gated, x.arg(), scalar(0), scalar64(gate.address())).has_value());
    for (u32 i = 1; i <= 200; ++i) REQUIRE(run(s.client.stream(), s.add, x.arg(), scalar(i)).has_value());
    gate.open = true;
    CHECK(x.read(c).value() == std::vector<u32>{20100});
  }
}

TEST_CASE("a write waits for the kernels that still read, and they see what was there before") {
  FakeServer s;
  // gated_copy(In x, Out y, u32, gate) would need code of its own: a reader that is held back is a gated kernel whose next task in the
  // stream reads x.
  Gate gate;
  Buffer<u32> x = s.buffer({4}), y = s.buffer({0}), z = s.buffer({0});
  const Stream a = s.client.stream(), b = s.client.stream();
  REQUIRE(run(a, s.gated, z.arg(), scalar(1), scalar64(gate.address())).has_value());
  REQUIRE(run(a, s.copy, x.arg(), y.arg()).has_value());  // held back by the gate
  REQUIRE(x.write(b, {8}).has_value());                   // must not get before it
  REQUIRE(run(b, s.add, x.arg(), scalar(1)).has_value());
  gate.open = true;
  CHECK(y.read().value() == std::vector<u32>{4});
  CHECK(x.read().value() == std::vector<u32>{9});
}

TEST_CASE("a read that waits is made once, whatever is refused, skipped or does not compile meanwhile") {
  FakeServer s;
  Gate gate;
  Buffer<u32> y = s.buffer({0, 0, 0}), x = s.buffer({1}), z = s.buffer({1}), w = s.buffer({1});
  const Stream a = s.client.stream(), b = s.client.stream(), c = s.client.stream();
  REQUIRE(run(a, s.gated, y.arg(), scalar(5), scalar64(gate.address())).has_value());
  const auto enqueued = [&] { return s.local().device().last(rt::queue_of(b.id())).position; };
  const std::uint64_t before = enqueued();
  std::thread reader([&] { CHECK(y.read(b).value() == std::vector<u32>{5, 5, 5}); });
  while (enqueued() == before) std::this_thread::yield();
  CHECK_FALSE(run(c, s.broken, x.arg(), z.arg()).has_value());
  CHECK_FALSE(run(c, s.copy, z.arg(), w.arg()).has_value());  // skipped
  gate.open = true;
  reader.join();
  CHECK(enqueued() == before + 1);
}

TEST_CASE("a read is made once, and gives what was there at its place, whatever faults late or is overwritten behind it") {
  FakeServer s;
  Gate gate;
  Buffer<u32> y = s.buffer({0, 0, 0}), other = s.buffer({1, 1, 1});
  const Stream a = s.client.stream(), b = s.client.stream(), c = s.client.stream();
  REQUIRE(run(a, s.gated, y.arg(), scalar(5), scalar64(gate.address())).has_value());
  const auto enqueued = [&] { return s.local().device().last(rt::queue_of(b.id())).position; };
  const std::uint64_t before = enqueued();
  std::atomic<bool> done{false};
  std::thread reader([&] {
    CHECK(y.read(b).value() == std::vector<u32>{5, 5, 5});
    done = true;
  });
  while (enqueued() == before) std::this_thread::yield();
  REQUIRE(run(c, s.fault, y.arg(), scalar(13)).has_value());  // behind the read, on its bytes
  std::thread faults([&] {
    while (!done) {
      static_cast<void>(run(c, s.fault, other.arg(), scalar(13)));
      static_cast<void>(other.write(c, {1, 1, 1}));
      static_cast<void>(other.read(c));  // finds the fault
    }
  });
  gate.open = true;
  reader.join();
  faults.join();
  CHECK(enqueued() == before + 1);
  CHECK_FALSE(y.read().has_value());
}

TEST_CASE("a read between a launch that faults late and the write that repairs its bytes never gives what the launch left") {
  for (int round = 0; round < 50; ++round) {
    FakeServer s;
    Gate gate;
    Buffer<u32> g = s.buffer({0}), y = s.buffer({1, 1, 1});
    const Stream a = s.client.stream(), b = s.client.stream(), c = s.client.stream();
    REQUIRE(run(a, s.gated, g.arg(), scalar(5), scalar64(gate.address())).has_value());
    REQUIRE(run(a, s.fault, y.arg(), scalar(13)).has_value());
    const auto enqueued = [&] { return s.local().device().last(rt::queue_of(b.id())).position; };
    const std::uint64_t before = enqueued();
    std::thread reader([&] {
      const Result<std::vector<u32>> bytes = y.read(b);
      REQUIRE_FALSE(bytes.has_value());  // its place is before the write
      CHECK_MESSAGE(bytes.error().text().find("store of 'y' at index 3") != std::string::npos, bytes.error().text());
    });
    while (enqueued() == before) std::this_thread::yield();
    std::thread writer([&] { CHECK(y.write(c, {7, 7, 7}).has_value()); });
    gate.open = true;
    for (int i = 0; i < round % 8; ++i) static_cast<void>(g.read(c));  // confirms, so that the reader is not the only one to find the fault
    reader.join();
    writer.join();
    CHECK(y.read().value() == std::vector<u32>{7, 7, 7});
  }
}

TEST_CASE("memory that is dropped while a kernel uses it is freed after that kernel") {
  FakeServer s;
  Gate gate;
  const Stream a = s.client.stream();
  {
    Buffer<u32> x = s.buffer(std::vector<u32>(100000, 1));
    REQUIRE(run(a, s.gated, x.arg(), scalar(2), scalar64(gate.address())).has_value());
    gate.await_entered();
  }
  Buffer<u32> other = s.buffer(std::vector<u32>(100000, 5));  // a freed block of that size would be handed out here
  gate.open = true;
  REQUIRE(a.sync().has_value());
  CHECK(other.read().value() == std::vector<u32>(100000, 5));
}

TEST_CASE("a server that goes away with work in its queues runs it first") {
  static std::atomic<int> ran{0};
  Gate gate;
  std::thread opener;
  {
    FakeServer s(2);
    s.compiler.define("fill", [](const void*, const HostGrid*, std::uint64_t, std::uint64_t, void*) { ++ran; });
    Buffer<u32> y = s.buffer({0});
    const Stream a = s.client.stream();
    REQUIRE(run(a, s.gated, y.arg(), scalar(1), scalar64(gate.address())).has_value());
    for (int i = 0; i < 20; ++i) REQUIRE(run(a, s.fill, y.arg(), scalar(1)).has_value());
    gate.await_entered();
    opener = std::thread([&] { gate.open = true; });
  }
  CHECK(ran.load() == 20);
  opener.join();
}

TEST_CASE("every block runs exactly once, in chunks that start in ascending order, whatever the number of threads") {
  static std::mutex mutex;
  static std::vector<std::pair<std::uint64_t, std::uint64_t>> chunks;
  for (const unsigned workers : {1u, 2u, 7u}) {
    CAPTURE(workers);
    FakeServer s(workers);
    s.compiler.define("fill", [](const void*, const HostGrid*, std::uint64_t first, std::uint64_t last, void*) {
      const std::lock_guard lock(mutex);
      chunks.emplace_back(first, last);
    });
    chunks.clear();
    Buffer<u32> y = s.buffer(std::vector<u32>(10007));
    REQUIRE(run(s.client.stream(), s.fill, y.arg(), scalar(1)).has_value());
    REQUIRE(s.client.sync().has_value());
    if (workers == 1) CHECK(std::is_sorted(chunks.begin(), chunks.end()));
    std::sort(chunks.begin(), chunks.end());
    std::uint64_t next = 0;
    for (const auto& [first, last] : chunks) {
      CHECK(first == next);
      next = last;
    }
    CHECK(next == 10007);
  }
}

TEST_CASE("the scratch memory of a block is aligned and as large as shared memory and context ask for") {
  static std::atomic<std::uint64_t> misaligned{0};
  FakeServer s(2);
  s.compiler.context_bytes = 100000;
  s.compiler.define("fill", [](const void* params, const HostGrid* grid, std::uint64_t first, std::uint64_t last, void* scratch) {
    misaligned += reinterpret_cast<std::uintptr_t>(scratch) % 64 != 0;
    std::memset(scratch, 0xee, (grid->dynamic_shared_bytes + 63) / 64 * 64 + 100000);  // a sanitizer sees a byte too many
    fill_code(params, grid, first, last, scratch);
  });
  Buffer<u32> y = s.buffer(std::vector<u32>(64));
  for (const std::uint32_t shared : {0u, 1u, 1000u, 200000u}) {
    const LaunchArg args[] = {y.arg(), scalar(shared)};
    LaunchRequest request{&s.fill, {}, args};
    request.config.grid = Dim3(64);
    request.config.shared_bytes = shared;
    REQUIRE(launch(s.client.default_stream(), request).has_value());
    CHECK(y.read().value() == std::vector<u32>(64, shared));
  }
  CHECK(misaligned.load() == 0);
}

TEST_CASE("code is told the launch's block, and gets scratch memory for each of its warps, in a replayed graph too") {
  static std::array<std::uint32_t, 3> told{};
  FakeServer s(1);
  s.compiler.context_bytes = 64;
  s.compiler.context_bytes_per_warp = 10'000;
  s.compiler.define("fill", [](const void* params, const HostGrid* grid, std::uint64_t first, std::uint64_t last, void* scratch) {
    told = {grid->block[0], grid->block[1], grid->block[2]};
    const std::size_t warps = (told[0] * told[1] * told[2] + 31) / 32;
    std::memset(scratch, 0xee, (grid->dynamic_shared_bytes + 63) / 64 * 64 + 64 + warps * 10'000);  // a sanitizer sees a byte too many
    fill_code(params, grid, first, last, scratch);
  });
  Buffer<u32> y = s.buffer(std::vector<u32>(64));
  const Stream stream = s.client.stream();
  std::uint32_t n = 0;
  for (const Dim3 block : {Dim3(1), Dim3(32), Dim3(33), Dim3(1024), Dim3(8, 4, 2), Dim3(1, 1, 64), Dim3(16, 16)}) {
    for (const bool replayed : {false, true}) {
      const LaunchArg args[] = {y.arg(), scalar(++n)};
      LaunchRequest request{&s.fill, {}, args};
      request.config = {.grid = Dim3(64), .block = block, .shared_bytes = 100};
      if (replayed) {
        const Graph graph = capture(stream, [&] { REQUIRE(launch(stream, request).has_value()); }).value();
        REQUIRE(graph.replay(stream).has_value());
      } else {
        REQUIRE(launch(stream, request).has_value());
      }
      CHECK(y.read(stream).value() == std::vector<u32>(64, n));
      CHECK(told == std::array<std::uint32_t, 3>{block.x, block.y, block.z});
    }
  }
}

TEST_CASE("more launches than the device holds at a time are all run, also when nobody ever waits") {
  FakeServer s(2);
  Buffer<u32> x = s.buffer({0});
  const Stream a = s.client.stream();
  for (int i = 0; i < 5000; ++i) REQUIRE(run(a, s.add, x.arg(), scalar(1)).has_value());
  CHECK(x.read(a).value() == std::vector<u32>{5000});
  CHECK(s.local().fault_slots().used() == 0);
}

TEST_CASE("copies and launches that nobody waits for are confirmed on the way: the log stays as short as the backlog") {
  FakeServer s(2);
  Buffer<u32> x = s.buffer({1}), y = s.buffer({2});
  const Stream a = s.client.stream();
  std::size_t longest = 0;
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(rt::copy(a, y.binding(), x.binding()).has_value());
    longest = std::max(longest, s.local().unconfirmed());
  }
  for (int i = 0; i < 5000; ++i) {
    REQUIRE(run(a, s.add, x.arg(), scalar(1)).has_value());
    longest = std::max(longest, s.local().unconfirmed());
  }
  CHECK(longest <= 1024 + 2 * 64);
  CHECK(x.read().value() == std::vector<u32>{5001});
}

TEST_CASE("a parameter block of any size reaches the kernel") {
  FakeServer s(2);
  ir::Kernel k;
  k.name = "wide";
  ir::Builder b(k);
  const auto y = b.buffer("y", ir::Type::U32, 1, ir::Access::Out);
  for (int i = 0; i < 300; ++i) b.scalar("s" + std::to_string(i), ir::Type::U64);
  b.store(y, {b.query(ir::Opcode::GlobalId)}, b.const_u32(0));
  s.compiler.define("wide", [](const void* params, const HostGrid*, std::uint64_t, std::uint64_t, void*) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < 300; ++i) sum += param<std::uint64_t>(params, 16 + 8 * i);
    *param<std::uint32_t*>(params, 0) = static_cast<std::uint32_t>(sum);
  });
  const Variant variant(k);
  Buffer<u32> out = s.buffer({0});
  std::vector<LaunchArg> args{out.arg()};
  for (u64 i = 0; i < 300; ++i) args.push_back(scalar64(i));
  LaunchRequest request{&variant, {}, args};
  for (int round = 0; round < 3; ++round) {
    REQUIRE(launch(s.client.default_stream(), request).has_value());
    CHECK(out.read().value() == std::vector<u32>{44850});
  }
}

TEST_CASE("eight threads launch, copy, write and read at the same time, each on its own buffers and on one that all add to") {
  FakeServer s(4);
  Buffer<u32> shared = s.buffer(std::vector<u32>(64, 0));
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (u32 round = 0; round < 100; ++round) {
        Buffer<u32> x = s.buffer(std::vector<u32>(32, t)), y = s.buffer(std::vector<u32>(32));
        const Stream stream = round % 3 == 0 ? s.client.stream() : s.client.default_stream();
        CHECK(run(stream, s.add, x.arg(), scalar(round)).has_value());
        CHECK(run(s.client.default_stream(), s.copy, x.arg(), y.arg()).has_value());
        CHECK(run(stream, s.add, shared.arg(), scalar(1)).has_value());
        CHECK(y.read().value() == std::vector<u32>(32, t + round));
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(shared.read().value() == std::vector<u32>(64, 800));
  CHECK(s.compiler.compilations.load() == 2);  // add and copy: single flight
}
