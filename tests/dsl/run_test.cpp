// What the language decides, run on the interpreter and every device: short circuit, switch labels, ranges, assignments.
#include "recording.h"

#include <functional>

#include "support/devices.h"

using namespace kiln;
namespace t = kiln::test;

namespace {

// Runs a body with `x` (u32 inputs) and as many results as `want`, one thread an element, in blocks of 40: no multiple of a warp.
template <class F>
void expect_results(F body, const std::vector<u32>& x, const std::vector<u32>& want) {
  const Variant variant(recording::of(body));
  const std::vector<t::Arg> args{t::buffer(x), t::buffer(std::vector<u32>(want.size(), 0xdead))};
  const u32 n = static_cast<u32>(want.size());
  for (const auto mode : {ir::PrepareOptions::Mode::Checked, ir::PrepareOptions::Mode::Unchecked}) {
    const auto outcomes = t::run_everywhere(variant, {{(n + 39) / 40}, {40}}, args, {.mode = mode});
    CHECK(t::differences(outcomes, args) == "");
    for (const t::DeviceOutcome& o : outcomes) {
      INFO(o.device);
      CHECK(!o.fault.has_value());
      REQUIRE(!o.memory.empty());
      const std::vector<u32> got = t::elements<u32>(o, 1);
      for (std::size_t i = 0; i < want.size(); ++i) {
        if (got[i] != want[i]) FAIL_CHECK("element " << i << " is " << got[i] << " instead of " << want[i]);
      }
    }
  }
}

std::vector<u32> of_each(std::size_t n, const std::function<u32(u32)>& f) {
  std::vector<u32> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = f(static_cast<u32>(i));
  return v;
}

}  // namespace

TEST_CASE("a load on the right of && or || never leaves the buffer that the left guards") {
  const std::vector<u32> x = of_each(50, [](u32 i) { return i % 3; });
  // 100 threads, 50 elements: without the short circuit half of the loads would be out of range.
  expect_results([](In<u32> a, Out<u32> b) {
    auto i = global_id().x;
    If (i < b.size()) {
      Var<u32> r = 0;
      If (i < a.size() && a[i] > 0) { r = 1; }
      If (i >= a.size() || a[i] == 2) { r += 2; }
      If (i < a.size() && (a[i] == 1 || a[a.size() - 1 - i] == 2)) { r += 4; }
      b[i] = r;
    }
  }, x, of_each(100, [&](u32 i) {
    u32 r = 0;
    if (i < 50 && x[i] > 0) r = 1;
    if (i >= 50 || x[i] == 2) r += 2;
    if (i < 50 && (x[i] == 1 || x[49 - i] == 2)) r += 4;
    return r;
  }));
}

TEST_CASE("short circuit with named and mutable left sides, in conditions of While, and as a value") {
  const std::vector<u32> x = of_each(64, [](u32 i) { return (i * 7) % 5; });
  expect_results([](In<u32> a, Out<u32> b) {
    auto i = global_id().x;
    If (i < b.size()) {
      auto inside = i < a.size();
      Var<bool> flag = inside;
      auto named = inside && a[i] > 2;
      auto mutable_ = flag && a[i] < 2;
      Var<u32> steps = i;
      While (steps < a.size() && a[steps] != 0) { steps += 1; }
      b[i] = steps * 4 + select<u32>(named, 1, 0) + select<u32>(mutable_, 2, 0);
    }
  }, x, of_each(90, [&](u32 i) {
    u32 steps = i;
    while (steps < 64 && x[steps] != 0) ++steps;
    return steps * 4 + (i < 64 && x[i] > 2 ? 1 : 0) + (i < 64 && x[i] < 2 ? 2 : 0);
  }));
}

TEST_CASE("a named load before the condition is the author's own: it happens, and is reported") {
  const Variant variant(recording::of([](In<u32> a, Out<u32> b) {
    auto i = global_id().x;
    Val<u32> v = a[i];
    If (i < a.size() && v > 0) { b[i] = v; }
  }));
  const std::vector<t::Arg> args{t::buffer(std::vector<u32>(4, 1)), t::buffer(std::vector<u32>(8))};
  const auto outcomes = t::run_everywhere(variant, {{1}, {8}}, args);
  CHECK(t::differences(outcomes, args) == "");
  for (const t::DeviceOutcome& o : outcomes) {
    INFO(o.device);
    REQUIRE(o.fault.has_value());
    CHECK(o.fault->operation == "load");
    CHECK(o.fault->index >= 4);
    CHECK(o.fault->extent == 4);
  }
}

TEST_CASE("Switch chooses by label; several labels share a body; the rest is the default") {
  const std::vector<u32> x = of_each(80, [](u32 i) { return i % 9; });
  expect_results([](In<u32> a, Out<u32> b) {
    auto i = global_id().x;
    If (i < b.size() && i < a.size()) {
      Var<u32> r = 0;
      Switch (a[i]) {
        Case (0) { r = 10; }
        Case (1, 4, 7) { r = 20 + a[i]; }
        Case (2) {
          Switch (i % 4) {
            Case (0, 1) { r = 30; }
            Default { r = 31; }
          }
        }
        Default { r = 40; }
      }
      b[i] = r;
    }
  }, x, of_each(80, [&](u32 i) -> u32 {
    switch (x[i]) {
      case 0: return 10;
      case 1: case 4: case 7: return 20 + x[i];
      case 2: return i % 4 < 2 ? 30 : 31;
      default: return 40;
    }
  }));
}

TEST_CASE("Break, Continue and Return, alone and in a Switch, do what C++ does") {
  const std::vector<u32> x = of_each(70, [](u32 i) { return i * 5 % 11; });
  expect_results([](In<u32> a, Out<u32> b) {
    auto i = global_id().x;
    If (i >= b.size()) { Return(); }
    b[i] = 1000;
    Var<u32> sum = 0;
    for (auto j : range(a.size())) {
      If (j > i) { Break(); }
      Switch (a[j] % 4) {
        Case (1) { Continue(); }
        Case (2) { sum += 100; }
      }
      Var<u32> k = 0;
      While (k < 10) {
        k += 1;
        If (k == 3) { Continue(); }
        If (k > a[j]) { Break(); }
        sum += k;
      }
    }
    If (sum > 1500) { Return(); }
    b[i] = sum;
  }, x, of_each(70, [&](u32 i) {
    u32 sum = 0;
    for (u32 j = 0; j < 70; ++j) {
      if (j > i) break;
      if (x[j] % 4 == 1) continue;
      if (x[j] % 4 == 2) sum += 100;
      for (u32 k = 0; k < 10;) {
        ++k;
        if (k == 3) continue;
        if (k > x[j]) break;
        sum += k;
      }
    }
    return sum > 1500 ? 1000 : sum;
  }));
}

TEST_CASE("ranges count as C++ loops of their type do") {
  expect_results([](In<u32> a, Out<u32> b) {
    auto i = global_id().x;
    If (i < b.size()) {
      Var<u32> sum = 0;
      for (auto k : range(5)) { sum += k; }
      for (auto k : range(i, a.size(), 7)) { sum += a[k]; }
      for (auto k : range<i32>(-3, 4)) { sum += cast<u32>(k * k); }
      for (auto k : range(cast<i64>(i), 10)) { sum += cast<u32>(k); }
      for (auto k : range(Val<u64>(0), 0)) { sum += cast<u32>(k) + 100000; }
      b[i] = sum;
    }
  }, of_each(50, [](u32 i) { return i; }), of_each(60, [](u32 i) {
    u32 sum = 0;
    for (u32 k = 0; k < 5; ++k) sum += k;
    for (u32 k = i; k < 50; k += 7) sum += k;
    for (int k = -3; k < 4; ++k) sum += static_cast<u32>(k * k);
    for (u32 k = i; k < 10; ++k) sum += k;
    return sum;
  }));
}

TEST_CASE("Var copies, element assignments and ++ have C++'s meaning") {
  expect_results([](In<u32> a, InOut<u32> b) {
    auto i = global_id().x;
    If (i < a.size() && i < b.size()) {
      Var<u32> x = a[i];
      Var<u32> y = x;
      auto z = y;
      x += 1;
      y = x++ * 10;
      ++z;
      b[i] = x + y + z;
      b[i] += 1000;
      b[i]++;
      b[i] ^= 1;
      b[i] <<= 1;
    }
  }, of_each(64, [](u32 i) { return i; }), of_each(64, [](u32 i) {
    u32 x = i, y = x, z = y;
    x += 1;
    y = x++ * 10;
    ++z;
    return ((x + y + z + 1000 + 1) ^ 1) << 1;
  }));
}

TEST_CASE("local, shared and dynamic shared memory hold what is put there") {
  const Variant variant(recording::of([](In<u32> a, Out<u32> b) {
    block_size(40);
    require(a.size() == b.size());
    Shared<u32, 2> tile(5, 8u);
    DynamicShared<u32> dynamic;
    Local<u32, 4> local;
    auto t = thread_id().x, i = global_id().x;
    for (u32 k = 0; k < 4; ++k) local[k] = t * k;
    Var<u32> v = 0;
    If (i < a.size()) { v = a[i]; }
    tile[t / 8, t % 8] = v;
    dynamic[t] = v + 1;
    barrier();
    auto other = 39 - t;
    If (i < b.size()) { b[i] = tile[other / 8, other % 8] * 1000 + dynamic[other] + local[t % 4]; }
  }));
  const std::vector<u32> x = of_each(80, [](u32 i) { return i; });
  const std::vector<t::Arg> args{t::buffer(x), t::room(ir::Type::U32, {80})};
  const auto outcomes = t::run_everywhere(variant, {{2}, {40}, 160}, args);
  CHECK(t::differences(outcomes, args) == "");
  for (const t::DeviceOutcome& o : outcomes) {
    const std::vector<u32> got = t::elements<u32>(o, 1);
    for (u32 i = 0; i < 80; ++i) {
      const u32 thread = i % 40, other = i - thread + 39 - thread;
      CHECK(got[i] == other * 1000 + other + 1 + thread * (thread % 4));
    }
  }
}
