// Code that is told its block at launch: one code of a kernel does for every shape what the interpreter does. On the CPU code for a row of
// threads, and code for any shape; on a GPU all code is.
#include "support/launch_blocks.h"

#include <algorithm>

#include "conformance/everywhere.h"
#include "conformance/made_of.h"
#include "support/clients.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace {

using Mode = ir::PrepareOptions::Mode;

// Whole warps and parts of one, rows, planes and columns, and the greatest of each.
const std::vector<Dim3> kShapes{{1},      {3},       {31},    {32},       {33},       {64},         {1000},     {1024},
                                {16, 16}, {7, 5, 3}, {32, 4}, {1, 1, 64}, {2, 1, 17}, {1, 1024, 1}, {1, 33, 2}, {64, 2, 8}};
constexpr u32 kBlocks = 3;

Val<u32> threads_of_block() { return block_dim().x * block_dim().y * block_dim().z; }
Val<u32> place() { return block_id().x * threads_of_block() + linear_thread(); }

std::vector<Line> in_order(std::vector<Line> log) {  // each thread's lines as they came
  std::stable_sort(log.begin(), log.end(),
                   [](const Line& a, const Line& b) { return std::pair(a.block, a.thread) < std::pair(b.block, b.thread); });
  return log;
}

void compare(const Outcome& got, const Outcome& wanted) {
  CAPTURE(got.where);
  CHECK(got.fault.has_value() == wanted.fault.has_value());
  if (got.fault && wanted.fault) {
    const BoundsFault &g = *got.fault, &w = *wanted.fault;
    CHECK(g.thread == w.thread);
    CHECK(g.block == w.block);
    CHECK(g.operation == w.operation);
    CHECK(g.place == w.place);
    CHECK(g.index == w.index);
    CHECK(g.extent == w.extent);
  } else {
    CHECK_MESSAGE(!got.error, (got.error ? got.error->text() : ""));
    CHECK(got.bytes == wanted.bytes);
  }
  CHECK(in_order(got.log) == in_order(wanted.log));
}

std::vector<Client> told_at_launch() {
  std::vector<Client> all;
  if (asked_for("cpu")) all = {client_of(LaunchBlocks::Rows), client_of(LaunchBlocks::Any)};
  for (const Client& client : clients())
    if (client.properties().kind != "cpu" && !is_simulated(client)) all.push_back(client);  // simulated, they would take minutes
  return all;
}

// The body on every shape: y has an element for each thread of the grid, z one.
void check_shapes(const std::shared_ptr<const Variant>& k, bool faults = false) {
  const std::vector<u32> x = made_of<u32>(4096, [](std::size_t i) { return i * 2654435761u >> 7; });
  const int before[] = {compilations(LaunchBlocks::Rows), compilations(LaunchBlocks::Any)};
  for (const Mode mode : {Mode::Checked, Mode::Unchecked}) {
    if (faults && mode == Mode::Unchecked) continue;
    for (const Dim3& block : kShapes) {
      CAPTURE(shown(block));
      const std::vector<Arg> args{buffer(x), filled<u32>(kBlocks * threads(block), 99), filled<u32>(1, 5)};
      const auto outcomes = run_on(told_at_launch(), *k, {{kBlocks}, block}, args, mode, mode == Mode::Unchecked);
      CHECK(outcomes[0].fault.has_value() == faults);
      for (std::size_t i = 1; i < outcomes.size(); ++i) compare(outcomes[i], outcomes[0]);
    }
  }
  const int modes = !asked_for("cpu") ? 0 : faults ? 1 : 2;
  CHECK(compilations(LaunchBlocks::Rows) - before[0] == 2 * modes);  // rows, and what is none
  CHECK(compilations(LaunchBlocks::Any) - before[1] == modes);
}

template <class F>
void check_shapes(const char* name, F body, bool faults = false) {
  CAPTURE(std::string(name));
  check_shapes(kernel(name, body), faults);
}

}  // namespace

TEST_CASE("a block that is given at launch: every index and dimension is that of the launch") {
  check_shapes("indices", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    Var<u32> r = x[0] + z[0];
    const auto mix = [&](const Val<u32>& v) { r = r * 31 + v; };
    auto [tx, ty, tz] = thread_id();
    auto [gx, gy, gz] = global_id();
    auto [bx, by, bz] = block_dim();
    for (const Val<u32>& v : {tx, ty, tz, gx, gy, gz, bx, by, bz, block_id().x, grid_dim().x, lane_id(), warp_id()}) mix(v);
    y[place()] = r;
  });
}

TEST_CASE("a block that is given at launch: elements side by side, in rows, scattered, and behind a test of their index") {
  check_shapes("elements", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    auto i = global_id().x, t = linear_thread();
    Var<u32> r = x[i % 4096] + x[i % 32] + x[i / 32] + x[t] + x[t * 3 % 4096] + x[thread_id().y] + x[t / 32] + x[t % 32];
    If (i < x.size()) { r += x[i]; }
    If (t > 5) { r += x[t - 5]; }
    If (thread_id().y == 0 && thread_id().z == 0) { r += x[thread_id().x]; }
    y[place()] = r + z[0];
  });
}

TEST_CASE("a block that is given at launch: values, locals and local arrays go over barriers, through shared memory") {
  check_shapes("carried", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    Shared<u32> s(1024);
    Local<u32, 4> mine;
    auto t = linear_thread(), n = threads_of_block();
    Val<u32> early = x[t] / 3;
    Var<u8> small = cast<u8>(t);
    Var<f64> d = cast<f64>(t) * 0.5;
    Var<bool> flag = t % 3 == 0;
    for (auto i : range(4)) { mine[i] = t * 10 + i; }
    Var<u32> r = z[0];
    for (auto i : range(6)) {
      s[t] = mine[i % 4];
      barrier();
      Val<u32> theirs = s[(t + 1) % n];
      barrier();
      If (flag) { r += theirs; }
      Else { r += 1; }
      flag = flag ^ true;
      d = d + 1.0;
      small = small + 7;
      mine[i % 4] = theirs;
    }
    y[place()] = r + cast<u32>(d * 2.0) + early + cast<u32>(small);
  });
}

TEST_CASE("a block that is given at launch: threads leave before barriers, loops of the block end when all have left") {
  check_shapes("leaving", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    Shared<u32> s(1024);
    auto t = linear_thread(), n = threads_of_block();
    y[place()] = 1;
    s[t] = x[t];
    If (t % 5 == 2) { Return(); }
    barrier();
    Val<u32> other = s[n - 1 - t];
    y[place()] = other;
    If (t >= 40) { Return(); }
    for (auto i : range(3)) {
      barrier();
      s[t] = other + i + z[0];
      barrier();
      y[place()] = s[t] + other;
      If (t > 20 - i * 10) { Return(); }
    }
    While (true) {  // ends because nobody is left
      barrier();
      If (x[t] < 1u << 31) { Return(); }
    }
  });
}

TEST_CASE("a block that is given at launch: a local that only some threads set is zero in the others, behind barriers too") {
  check_shapes(from_text(R"(kir 1
kernel "unset" {
  buffer x : u32[*] in
  buffer y : u32[*] inout
  buffer z : u32[*] inout
  slot a : u32
  slot b : bool
  body {
    %tx = thread_id.x
    %ty = thread_id.y
    %tz = thread_id.z
    %dx = block_dim.x
    %dy = block_dim.y
    %dz = block_dim.z
    %zy = mul %tz, %dy
    %rows = add %zy, %ty
    %before = mul %rows, %dx
    %t = add %before, %tx
    %dxy = mul %dx, %dy
    %n = mul %dxy, %dz
    %block = block_id.x
    %first = mul %block, %n
    %at = add %first, %t
    %seven = const 7 : u32
    %turned = add %t, %block
    %left = rem %turned, %seven
    %three = const 3 : u32
    %some = eq %left, %three
    %yes = const true : bool
    if %some {
      store y[%at], %seven
      set a, %at
      set b, %yes
    }
    barrier
    %a = get a
    %b = get b
    %one = const 1 : u32
    %r = select %b, %a, %one
    %sum = add %r, %a
    store y[%at], %sum
  }
}
)"));
}

TEST_CASE("a block that is given at launch: small numbers made of its length and of indices wrap where they do") {
  check_shapes("small", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    // 64 * 1000 + 1000 + 536 is 2^16: within a warp of a row of 1000.
    Val<u16> v = cast<u16>(block_dim().x) * 64 + cast<u16>(thread_id().x) + 1000;
    Val<u8> w = cast<u8>(block_dim().y) * 8 + cast<u8>(thread_id().x);
    y[place()] = cast<u32>(v) + cast<u32>(w) * 65536 + x[cast<u32>(v) % 4096] + x[cast<u32>(w)] + z[0];
  });
}

TEST_CASE("a block that is given at launch: warp operations see the lanes that there are") {
  check_shapes("lanes", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    auto t = linear_thread();
    Val<u32> v = x[t];
    Var<u32> r = warp::sum(v) + warp::shfl_down(v, 3) * 3 + warp::shfl_up(v, 2) * 5 + warp::shfl_xor(v, 1) * 7 + warp::shfl_idx(v, t + 9);
    r = r * 31 + warp::ballot(v % 3 == 0) + warp::inclusive_max(v) + warp::exclusive_sum(v);
    If (v % 4 == 1) { r += warp::sum(v) + warp::ballot(true) + select(warp::elect(), Val<u32>(77), Val<u32>(0)); }
    Else {
      Val<bool> all = warp::all(v % 4 != 1), some = warp::any(v % 4 == 2);
      r += select(all && some, Val<u32>(1), Val<u32>(2));
    }
    y[place()] = r + z[0];
  });
}

TEST_CASE("a block that is given at launch: votes of the block count its threads") {
  check_shapes("votes", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    auto t = linear_thread(), n = threads_of_block();
    Var<u32> r = barrier_count(x[t] % 3 == 0) * 8;
    If (barrier_any(t == n - 1)) { r += 1; }
    If (barrier_all(t < n)) { r += 2; }
    If (barrier_all(t + 1 < n)) { r += 4; }
    r += barrier_count(true) * 4096 + z[0];
    y[place()] = r;
  });
}

TEST_CASE("a block that is given at launch: loops of different length, switches, break and continue") {
  check_shapes("loops", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    auto t = linear_thread();
    Var<u32> r = z[0];
    for (auto i : range(t % 7)) { r += x[t] + i; }
    for (auto i : range(10)) {
      If (i == t % 9) { Break(); }
      If ((i + t) % 3 == 0) { Continue(); }
      r += i * t;
    }
    for (auto i : range(global_id().x, 500, block_dim().x * grid_dim().x)) { r += x[i]; }
    for (auto i : range(thread_id().x, 200, block_dim().x)) { r += x[i] ^ thread_id().y; }
    Var<u32> left = t % 11;
    While (left > 0) { left -= 1, r = r * 3 + left; }
    Switch(t % 5) {
      Case(0) { r += 100; }
      Case(1, 2) { r ^= x[t]; }
      Default { r += block_dim().x; }
    }
    y[place()] = r;
  });
}

TEST_CASE("a block that is given at launch: atomics on shared and global memory") {
  check_shapes("atomics", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    Shared<u32> s(8);
    auto t = linear_thread();
    If (t < 8) { s[t] = 0; }
    for (auto i : range(t, 8, threads_of_block())) { s[i] = 0; }
    barrier();
    s.atomic_add(t % 8, x[t] % 100);
    z.atomic_add(0, t);
    barrier();
    y[place()] = s[t % 8] + s[(t + 1) % 8];
  });
}

TEST_CASE("a block that is given at launch: what a thread logs has its coordinates") {
  check_shapes("logged", [](In<u32> x, Out<u32> y, InOut<u32> z) {
    auto t = linear_thread(), n = threads_of_block();
    If (t % 37 == 3 || t == n - 1) { log("{} {} {} of {} is {}", thread_id().x, thread_id().y, thread_id().z, block_dim().y, x[t]); }
    y[place()] = z[0];
  });
}

TEST_CASE("a block that is given at launch: a check that fails names the thread") {
  check_shapes(
      "checked",
      [](In<u32> x, Out<u32> y, InOut<u32> z) {
        auto t = linear_thread();
        check(place() + 1 != y.size(), "thread {} is the last of {}", t, block_dim().x);
        y[place()] = x[t] + z[0];
      },
      true);
}

TEST_CASE("a block that is given at launch: accesses out of range name the thread, side by side and one by one") {
  check_shapes(
      "beyond",
      [](In<u32> x, Out<u32> y, InOut<u32> z) {
        y[place() + 1] = x[0] + z[0];  // the last thread of all
      },
      true);
  check_shapes(
      "beyond_in_row",
      [](In<u32> x, Out<u32> y, InOut<u32> z) {
        auto t = linear_thread();
        y[place()] = x[4096 - y.size() + place() + 1] + z[0] + t;
      },
      true);
  check_shapes(
      "beyond_one",
      [](In<u32> x, Out<u32> y, InOut<u32> z) {
        auto t = linear_thread(), n = threads_of_block();
        y[place()] = x[select(t == n - 1 && block_id().x == 1, Val<u32>(5000), t * t % 4096)] + z[0];
      },
      true);
}
