// Grids and blocks that the runtime chooses, grids that the device holds, launches that are checked once; on every device.
#include <doctest/doctest.h>
#include <kiln/kiln.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/fake_kernels.h"
#include "src/local_server.h"
#include "support/allocations.h"
#include "support/each_client.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace helpers {

KILN_KERNEL(shape, (Out<u32> out, Val<u32> n))
{
  auto i = global_id().x;
  If (i == 0) {
    out[0] = block_dim().x;
    out[1] = block_dim().y;
    out[2] = grid_dim().x;
    out[3] = grid_dim().y * grid_dim().z;
  }
  If (i < n && i + 4 < out.size()) { out[i + 4] = i; }
}
KILN_KERNEL(small_blocks, (Out<u32> out))
{
  max_threads(96);
  If (global_id().x == 0) { out[0] = block_dim().x; }
}
KILN_KERNEL(tiny_blocks, (Out<u32> out))
{
  max_threads(20);
  If (global_id().x == 0) { out[0] = block_dim().x; }
}
KILN_KERNEL(square, (Out<u32> out))
{
  block_size(16, 8);
  auto [x, y, z] = global_id();
  If (x == 0 && y == 0) { out[0] = grid_dim().x; }
}
// Never compiles: not all threads may reach the barrier.
KILN_KERNEL(never, (In<u32> in, Out<u32> out))
{
  If (in[thread_id().x] > 0) { barrier(); }
  out[thread_id().x] = 1;
}
KILN_KERNEL(counts, (Out<u32> grid, Val<u32> x, Val<u32> y, Val<u32> z))
{
  If (global_id().x == 0) {
    grid[0] = x;
    grid[1] = y;
    grid[2] = z;
  }
}
KILN_KERNEL(out_of_range, (Out<u32> out))
{ out[out.size() + thread_id().x] = 1; }
KILN_KERNEL(blocks, (Out<u32> out))
{
  auto b = block_id().x + grid_dim().x * (block_id().y + grid_dim().y * block_id().z);
  If (thread_id().x == 0 && b < out.size()) { out[b] = b + 1; }
}
KILN_KERNEL(copied, (In<u32> in, Out<u32> out))
{
  auto i = global_id().x;
  If (i < out.size() && i < in.size()) { out[i] = in[i]; }
}
KILN_KERNEL(at_most_two_blocks, (Out<u32> out))
{
  require(out.size() >= grid_dim().x);
  If (thread_id().x == 0) { out[block_id().x] = 9; }
}
KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a, Val<u32> n))
{
  require(x.size() >= n && y.size() >= n);
  auto i = global_id().x;
  If (i < n) { y[i] = a * x[i] + y[i]; }
}

}  // namespace helpers

namespace {

Buffer<u32> made(const Client& client, std::vector<u32> values) { return Buffer<u32>::from_host(client, values).value(); }
bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::string read_text(const Buffer<u32>& b) {
  const auto read = b.read();
  return read.has_value() ? "" : read.error().text();
}

}  // namespace

// --- blocks that the runtime chooses ------------------------------------------------------------------------------------------

TEST_CASE("an automatic launch covers its threads with blocks that suit the device") {
  const Client client = each_client();
  const DeviceProperties& p = client.properties();
  for (const u32 n : {1u, 31u, 1000u, 70000u}) {
    CAPTURE(n);
    Buffer<u32> out = made(client, std::vector<u32>(n + 4, 0xdead));
    REQUIRE(helpers::shape(automatic(n), out, n).has_value());
    const std::vector<u32> got = out.read().value();
    CHECK(got[0] % p.warp_size == 0);
    CHECK(got[0] <= p.max_threads_per_block);
    CHECK(got[1] == 1);
    CHECK(u64{got[0]} * got[2] >= n);
    CHECK(u64{got[0]} * (got[2] - 1) < n);  // and no block more
    CHECK(got[3] == 1);
    // As small as it takes to give each worker a block, and no smaller.
    if (got[0] > p.warp_size) CHECK((got[2] >= p.workers));
    if (p.kind == "cpu") CHECK(got[0] <= 256);
    for (u32 i = 0; i < n; ++i)
      if (got[i + 4] != i) FAIL_CHECK("element " << i);
  }
}

TEST_CASE("an automatic launch keeps to what the kernel declares") {
  const Client client = each_client();
  Buffer<u32> out = made(client, {0, 0, 0, 0});
  REQUIRE(helpers::small_blocks(automatic(100000), out).has_value());
  // Of 96 threads a multiprocessor has 21 or 10 blocks, of 64 all the threads that it can have.
  CHECK(out.read().value()[0] == (client.properties().kind == "cpu" ? 96 : 64));
  REQUIRE(helpers::tiny_blocks(automatic(100), out).has_value());
  CHECK(out.read().value()[0] == 20);
  REQUIRE(helpers::square(automatic(100), out).has_value());
  CHECK(out.read().value()[0] == 7);  // blocks of 16 along x
}

TEST_CASE("an automatic launch of nothing does nothing, one that fails claims its outputs, one too large is refused with the numbers") {
  const Client client = each_client();
  Buffer<u32> in = made(client, std::vector<u32>(64, 1)), out = made(client, std::vector<u32>(64, 5));
  REQUIRE(helpers::copied(automatic(0), in, out).has_value());
  CHECK(out.read().value()[0] == 5);
  CHECK_FALSE(helpers::never(automatic(64), in, out).has_value());
  CHECK(has(read_text(out), "barrier"));
  const auto refused = helpers::copied(automatic(~u64{0}), in, out);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == ErrorCode::TooManyResources);
  CHECK(refused.error().rule() == "DeviceDimensionExceeded");
  CHECK(refused.error().kernel() == "helpers::copied");
  CHECK(refused.error().data().limit == client.properties().max_grid.x);
}

TEST_CASE("on a GPU the block is the one of the best occupancy, by the program's shared memory too") {
  const Client client = sim_client(kSimH200);
  Buffer<u32> out = made(client, {0, 0, 0, 0});
  LaunchConfig config = automatic(u64{1} << 20);
  REQUIRE(helpers::shape(config, out, 0u).has_value());
  CHECK(out.read().value()[0] == 1024);  // two of them fill 2048 threads
  config.shared_bytes = 200 * 1024;      // one block at a time
  REQUIRE(helpers::shape(config, out, 0u).has_value());
  CHECK(out.read().value()[0] == 1024);
}

// --- grids that the device holds -----------------------------------------------------------------------------------------------

TEST_CASE("a launch whose grid a kernel before it wrote runs as many blocks, on another stream too") {
  const Client client = each_client();
  const Stream one = client.stream(), two = client.stream();
  Buffer<u32> grid = made(client, {0, 0, 0}), out = made(client, std::vector<u32>(32, 0));
  REQUIRE(helpers::counts(one, for_num_elems(1), grid, 3u, 2u, 2u).has_value());
  REQUIRE(helpers::blocks(two, dynamic_grid(grid, {32}), out).has_value());
  std::vector<u32> want(32, 0);
  for (u32 i = 0; i < 12; ++i) want[i] = i + 1;
  CHECK(out.read().value() == want);
  // What is written to the grid afterwards is too late for it.
  REQUIRE(helpers::counts(one, for_num_elems(1), grid, 20u, 1u, 1u).has_value());
  CHECK(out.read().value() == want);
  REQUIRE(helpers::blocks(dynamic_grid(grid, {32}), out).has_value());
  CHECK(out.read().value()[19] == 20);
}

TEST_CASE("a launch whose grid carries a failure is skipped, and its outputs and the grid report it") {
  for (const Client& client : clients())
    for (const bool late : {false, true}) {
      CAPTURE(client.properties().name);
      CAPTURE(late);
      Buffer<u32> in = made(client, std::vector<u32>(64, 1)), grid = made(client, {1, 1, 1, 0}), out = made(client, std::vector<u32>(8, 7));
      if (!late) CHECK_FALSE(helpers::never(for_num_elems(64), in, grid).has_value());
      else REQUIRE(helpers::out_of_range({{1}, {1}}, grid).has_value());
      const auto result = helpers::blocks(dynamic_grid(grid, {32}), out);
      if (!result.has_value()) CHECK(result.error().code() == ErrorCode::Skipped);
      const std::string of_out = read_text(out), of_grid = read_text(grid);
      CHECK(has(of_out, "'the grid'"));
      CHECK(has(of_out, "`blocks`"));
      CHECK(has(of_grid, "The bytes were never written"));
      REQUIRE(grid.write({2, 1, 1, 0}).has_value());
      REQUIRE(helpers::blocks(dynamic_grid(grid, {32}), out).has_value());
      CHECK(out.read().value() == std::vector<u32>{1, 2, 7, 7, 7, 7, 7, 7});
    }
}

TEST_CASE("a grid with a 0 does nothing, and what the output carried before it still carries") {
  for (const Client& client : clients())
    for (const bool late : {false, true}) {
      CAPTURE(client.properties().name);
      CAPTURE(late);
      Buffer<u32> in = made(client, std::vector<u32>(64, 1)), out = made(client, std::vector<u32>(64, 7)),
                  other = made(client, std::vector<u32>(64, 0));
      const std::vector<std::vector<u32>> empty{{0, 0, 0}, {0, 1, 1}, {5, 0, 3}, {0xffffffffu, 2, 0}};
      for (const std::vector<u32>& numbers : empty) {
        Buffer<u32> grid = made(client, numbers);
        REQUIRE(helpers::blocks(dynamic_grid(grid, {32}), out).has_value());
        CHECK(out.read().value() == std::vector<u32>(64, 7));
      }
      Buffer<u32> grid = made(client, {0, 1, 1});
      if (!late) CHECK_FALSE(helpers::never(for_num_elems(64), in, out).has_value());
      else REQUIRE(helpers::out_of_range({{1}, {1}}, out).has_value());
      REQUIRE(helpers::blocks(dynamic_grid(grid, {32}), out).has_value());
      helpers::copied(for_num_elems(64), out, other);
      CHECK(has(read_text(out), "The bytes were never written"));
      CHECK(has(read_text(other), "The bytes were never written"));
      // One that runs ends it.
      REQUIRE(grid.write({64, 1, 1}).has_value());
      REQUIRE(helpers::blocks(dynamic_grid(grid, {32}), out).has_value());
      REQUIRE(helpers::copied(for_num_elems(64), out, other).has_value());
      CHECK(read_text(other) == "");
      CHECK(other.read().value()[63] == 64);
    }
}

TEST_CASE("a grid beyond the limits claims what the launch was to write, with the numbers") {
  const Client client = each_client();
  const Dim3 max = client.properties().max_grid;
  struct Row {
    std::vector<u32> grid;
    u32 asked, limit;
    char axis;
  };
  const Row rows[] = {{{1, 0x10000, 1}, 0x10000, max.y, 'y'}, {{1, 1, 0xffffffffu}, 0xffffffffu, max.z, 'z'}};
  for (const Row& row : rows) {
    Buffer<u32> grid = made(client, row.grid), out = made(client, {7});
    (void)helpers::blocks(dynamic_grid(grid, {32}), out);
    const auto read = out.read();
    REQUIRE_FALSE(read.has_value());
    const Error& root = read.error().root();
    CHECK(root.code() == ErrorCode::TooManyResources);
    CHECK(root.rule() == "DynamicGridTooLarge");
    CHECK(root.data().requested == row.asked);
    CHECK(root.data().limit == row.limit);
    CHECK(root.kernel() == "helpers::blocks");
    CHECK(has(root.data().place, "launch_helpers_test.cpp:"));
    CHECK(has(root.text(), std::string("along ") + row.axis));
    CHECK(grid.read().value() == row.grid);
    CHECK(client.sync().has_value());  // the device is as before
  }
  // Positions in 32 bits, which the kernel counts.
  Buffer<u32> grid = made(client, {1u << 28, 1, 1}), in = made(client, {1}), out = made(client, {7});
  (void)helpers::copied(dynamic_grid(grid, {64}), in, out);
  const auto read = out.read();
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().root().data().limit == (1u << 26));
}

TEST_CASE("a grid must be three u32 of the device: anything else is refused before anything is touched") {
  const Client client = each_client();
  Buffer<u32> two = made(client, {1, 1}), out = made(client, {7});
  const auto refused = helpers::blocks(dynamic_grid(two, {32}), out);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().rule() == "DynamicGridBuffer");
  CHECK(refused.error().data().requested == 8);
  CHECK(refused.error().data().limit == 12);
  FakeServer other;
  Buffer<u32> foreign = made(other.client, {1, 1, 1});
  const auto elsewhere = helpers::blocks(client.stream(), dynamic_grid(foreign, {32}), out);
  REQUIRE_FALSE(elsewhere.has_value());
  CHECK(elsewhere.error().code() == ErrorCode::ForeignHandle);
  REQUIRE(helpers::blocks({{1}, {32}}, out).has_value());
  CHECK(out.read().value() == std::vector<u32>{1});
  CHECK_FALSE(helpers::blocks(dynamic_grid(made(client, {1, 1, 1}), {0}), out).has_value());  // the block is checked at once
}

TEST_CASE("a requirement on the number of blocks is checked with the numbers that the device holds") {
  const Client client = each_client();
  Buffer<u32> grid = made(client, {2, 1, 1}), out = made(client, {0, 0});
  REQUIRE(helpers::at_most_two_blocks(dynamic_grid(grid, {32}), out).has_value());
  CHECK(out.read().value() == std::vector<u32>{9, 9});
  REQUIRE(grid.write({3, 1, 1}).has_value());
  (void)helpers::at_most_two_blocks(dynamic_grid(grid, {32}), out);
  CHECK(has(read_text(out), "a requirement of the kernel does not hold"));
}

TEST_CASE("on the CPU device nobody waits for the grid: the launch is enqueued while the kernel that decides is held back") {
  FakeServer s;
  Gate gate;
  const Stream stream = s.client.stream();
  Buffer<u32> grid = s.buffer({0, 0, 0}), out = s.buffer({0, 0, 0, 0}), after = s.buffer({0, 0, 0, 0});
  // The gated kernel fills the grid with 1s.
  REQUIRE(run(stream, s.gated, grid.arg(), scalar(1), scalar64(gate.address())).has_value());
  gate.await_entered();
  const LaunchArg args[] = {out.arg(), scalar(5)};
  const Binding counts = grid.binding();
  LaunchRequest request;
  request.variant = &s.fill;
  request.args = args;
  request.dynamic_grid = &counts;
  REQUIRE(launch(stream, request).has_value());
  REQUIRE(run(stream, s.copy, out.arg(), after.arg()).has_value());
  CHECK(s.local().unconfirmed() >= 3);
  gate.open = true;
  CHECK(out.read().value() == std::vector<u32>{5, 0, 0, 0});  // one block
  CHECK(after.read().value() == std::vector<u32>{5, 0, 0, 0});
  CHECK(s.client.sync().has_value());
  CHECK(s.local().unconfirmed() == 0);
  CHECK(s.local().failures().empty());
}

// As gated, checked; out of range once the gate is open.
static void gated_fault_code(const void* params, const HostGrid* grid, std::uint64_t first, std::uint64_t last, void* scratch) {
  gated_code(params, grid, first, last, scratch);
  if (last != grid->grid[0]) return;
  auto* record = param<ir::FaultRecord*>(params, 32);
  std::uint32_t expected = 0;
  if (!std::atomic_ref(record->state).compare_exchange_strong(expected, 1)) return;
  record->kind = 1;
  std::atomic_ref(record->state).store(2);
}

TEST_CASE("a failure found while a launch with a grid of the device is pending stays until it is known to have run") {
  FakeServer s(12);  // each block that waits at a gate takes a thread
  s.compiler.define("gated_fault", gated_fault_code);
  const Variant faulty(gated_ir("gated_fault"));
  Gate fault, decision;
  const Stream one = s.client.stream(), two = s.client.stream(), three = s.client.stream();
  Buffer<u32> grid = s.buffer({9, 9, 9}), out = s.buffer({0, 0, 0, 0});
  u32 axes = 0;
  SUBCASE("it ran") { axes = 4; }
  SUBCASE("it did not") { axes = 0; }
  REQUIRE(run(one, faulty, out.arg(), scalar(1), scalar64(fault.address())).has_value());
  REQUIRE(run(two, s.gated, grid.arg(), scalar(axes), scalar64(decision.address())).has_value());
  fault.await_entered();
  decision.await_entered();
  const LaunchArg args[] = {out.arg(), scalar(5)};
  const Binding counts = grid.binding();
  LaunchRequest request;
  request.variant = &s.fill;
  request.args = args;
  request.dynamic_grid = &counts;
  REQUIRE(launch(three, request).has_value());
  fault.open = true;
  REQUIRE(one.sync().has_value());  // finds the fault; whether the other launch will write over it nobody knows
  CHECK_FALSE(s.client.check(out).has_value());
  decision.open = true;
  REQUIRE(three.sync().has_value());  // and now it is known
  const auto read = out.read();
  if (axes != 0) {
    CHECK(read.value() == std::vector<u32>{5, 5, 5, 5});
    CHECK(s.local().failures().empty());
  } else {
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().root().code() == ErrorCode::Bounds);
  }
}

// --- launches that are checked once ---------------------------------------------------------------------------------------------

TEST_CASE("a prepared launch runs each time as the launch it is, and holds its buffers") {
  const Client client = each_client();
  const Stream stream = client.stream();
  auto y = Buffer<f32>::from_host(client, std::vector<f32>(100, 1)).value();
  auto go = [&] {
    auto x = Buffer<f32>::from_host(client, std::vector<f32>(100, 2)).value();
    return helpers::saxpy.prepare(stream, for_num_elems(100), x, y, 3.0f, 100u).value();
  }();
  CHECK(y.read().value()[0] == 1);  // nothing ran yet
  for (int i = 0; i < 3; ++i) REQUIRE(go().has_value());
  CHECK(y.read().value() == std::vector<f32>(100, 19));
  REQUIRE(go.on(client.stream()).has_value());
  CHECK(y.read().value() == std::vector<f32>(100, 25));
  CHECK(go.config().block == Dim3(256));
}

TEST_CASE("what a launch would refuse, prepare refuses, and nothing is claimed since nothing was launched") {
  const Client client = each_client();
  auto x = Buffer<f32>::from_host(client, std::vector<f32>(10, 2)).value(),
       y = Buffer<f32>::from_host(client, std::vector<f32>(100, 1)).value();
  const auto rule = [](const auto& result) { return result.has_value() ? std::string("none") : result.error().rule(); };
  CHECK(rule(helpers::saxpy.prepare(client.stream(), for_num_elems(100), x, y, 3.0f, 100u)) == "SizeRequirementViolated");
  CHECK(rule(helpers::saxpy.prepare(client.stream(), {{1}, {0}}, x, y, 3.0f, 10u)) == "ZeroDimension");
  CHECK(rule(helpers::saxpy.prepare(client.stream(), for_num_elems(10), y, y, 3.0f, 10u)) == "AliasingArguments");
  CHECK(rule(helpers::saxpy.prepare(client.stream(), for_num_elems(10), x, y, 1e300, 10u)) == "ArgumentValue");
  FakeServer other;
  CHECK(rule(helpers::saxpy.prepare(other.client.stream(), for_num_elems(10), x, y, 3.0f, 10u)) == "ForeignHandle");
  Buffer<u32> in = made(client, std::vector<u32>(64, 1)), out = made(client, std::vector<u32>(64, 5));
  const auto never = helpers::never.prepare(client.stream(), for_num_elems(64), in, out);
  REQUIRE_FALSE(never.has_value());
  CHECK(never.error().kernel() == "helpers::never");
  CHECK(out.read().value()[0] == 5);
  CHECK(y.read().value()[0] == 1);
}

TEST_CASE("other arguments are checked like the first ones, and where they do not do the former ones stay") {
  const Client client = each_client();
  const Stream stream = client.stream();
  auto x = Buffer<f32>::from_host(client, std::vector<f32>(100, 2)).value(),
       y = Buffer<f32>::from_host(client, std::vector<f32>(100, 1)).value(),
       z = Buffer<f32>::from_host(client, std::vector<f32>(50, 1)).value();
  auto go = helpers::saxpy.prepare(stream, for_num_elems(100), x, y, 3.0f, 100u).value();
  REQUIRE(go.rebind(x, y, 1.0f, 40u).has_value());
  REQUIRE(go().has_value());
  CHECK(y.read().value()[39] == 3);
  CHECK(y.read().value()[40] == 1);
  const auto refused = go.rebind(x, z, 1.0f, 100u);
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().rule() == "SizeRequirementViolated");
  CHECK(go.rebind(x, y, 1.0f, -3).error().rule() == "ArgumentValue");
  REQUIRE(go().has_value());  // as before
  CHECK(y.read().value()[39] == 5);
  REQUIRE(go.rebind(x, z, 1.0f, 50u).has_value());
  REQUIRE(go().has_value());
  CHECK(z.read().value() == std::vector<f32>(50, 3));
  CHECK(y.read().value()[39] == 5);
}

TEST_CASE("a prepared launch is skipped, claims and faults late as any other") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> in = made(client, std::vector<u32>(64, 1)), mid = made(client, std::vector<u32>(64, 2)),
              out = made(client, std::vector<u32>(64, 3));
  auto go = helpers::copied.prepare(stream, for_num_elems(64), mid, out).value();
  CHECK_FALSE(helpers::never(stream, for_num_elems(64), in, mid).has_value());
  const auto skipped = go();
  REQUIRE_FALSE(skipped.has_value());
  CHECK(skipped.error().code() == ErrorCode::Skipped);
  CHECK(has(read_text(out), "skipped `copied`"));
  REQUIRE(mid.write(std::vector<u32>(64, 8)).has_value());
  REQUIRE(go().has_value());
  CHECK(out.read().value() == std::vector<u32>(64, 8));
  auto bad = helpers::out_of_range.prepare(stream, {{1}, {1}}, mid).value();
  REQUIRE(bad().has_value());
  (void)go();
  CHECK(has(read_text(out), "out of range"));
  // With a grid of the device, and with a block that was chosen.
  Buffer<u32> grid = made(client, {2, 1, 1});
  auto some = helpers::blocks.prepare(stream, dynamic_grid(grid, {32}), out).value();
  REQUIRE(some().has_value());
  CHECK(out.read().value()[1] == 2);
  REQUIRE(grid.write({3, 1, 1}).has_value());
  REQUIRE(some().has_value());
  CHECK(out.read().value()[2] == 3);
  auto chosen = helpers::copied.prepare(stream, automatic(64), in, out).value();
  CHECK(chosen.config().block.x >= 32);
  REQUIRE(chosen().has_value());
  CHECK(out.read().value() == std::vector<u32>(64, 1));
}

TEST_CASE("a prepared launch is not for a stream of another device, and says so without touching anything") {
  const Client client = each_client();
  Buffer<u32> in = made(client, {1}), out = made(client, {5});
  auto go = helpers::copied.prepare(client.stream(), for_num_elems(1), in, out).value();
  FakeServer other;
  const auto refused = go.on(other.client.stream());
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code() == ErrorCode::ForeignHandle);
  CHECK(refused.error().rule() == "PreparedElsewhere");
  CHECK(refused.error().kernel() == "helpers::copied");
  CHECK(has(refused.error().data().place, "launch_helpers_test.cpp:"));
  CHECK(out.read().value() == std::vector<u32>{5});
}

TEST_CASE("a prepared launch allocates nothing, and launching it from several threads at a time adds up") {
  const Client client = each_client();
  const Stream stream = client.stream();
  auto x = Buffer<f32>::from_host(client, std::vector<f32>(32, 1)).value(),
       y = Buffer<f32>::from_host(client, std::vector<f32>(32, 0)).value();
  auto go = helpers::saxpy.prepare(stream, {{1}, {32}}, x, y, 1.0f, 32u).value();
  for (int i = 0; i < 100; ++i) REQUIRE(go().has_value());
  REQUIRE(stream.sync().has_value());
  if (allocations_counted() && client.properties().kind == "cpu") {
    const std::uint64_t before = allocations();
    for (int i = 0; i < 20; ++i) (void)go();
    CHECK(allocations() == before);
  }
  const f32 base = y.read().value()[0];
  std::vector<std::jthread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 25; ++i) (void)go();
    });
  threads.clear();
  CHECK(y.read().value() == std::vector<f32>(32, base + 100));
}
