// Clocks, on every device: they go on, and each is read where it stands.
#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

std::size_t count(const ir::Kernel& k, ir::Opcode code) {
  std::size_t n = 0;
  ir::walk(k, 0, [&](ir::OpId id) { n += k.op(id).code == code; });
  return n;
}

}  // namespace

TEST_CASE("clocks never run backwards in a thread: over stores, barriers, loops and branches") {
  const auto k = kernel("clocks", [](InOut<u32> y) {
    auto i = thread_id().x;
    Shared<u32> s(64);
    Val<u64> c0 = clock_cycles(), t0 = global_time();
    s[i] = i;
    Val<u64> c1 = clock_cycles(), t1 = global_time();
    barrier();
    Var<u64> last_c = c1, last_t = t1;
    Var<u32> good = 1;
    for (auto n : range(i % 7)) {
      s[i] += n;
      Val<u64> c = clock_cycles(), t = global_time();
      If (c < last_c || t < last_t) { good = 0; }
      last_c = c, last_t = t;
    }
    barrier();
    Val<u64> c2 = clock_cycles(), t2 = global_time();
    If (c1 < c0 || t1 < t0 || c2 < last_c || t2 < last_t) { good = 0; }
    y[global_id().x] = good;
  });
  check_run(*k, {{2}, {64}}, {filled<u32>(128, 0)}, 0, std::vector<u32>(128, 1));
}

TEST_CASE("clocks go on: over a long loop cycles pass, and nanoseconds") {
  const auto k = kernel("passes", [](In<u32> x, InOut<u64> y) {
    Val<u64> c = clock_cycles(), t = global_time();
    Var<u32> v = x[0];
    for (auto n : range(x[1])) v = v * 1664525u + n;
    y[2] = cast<u64>(v);
    Val<u64> c2 = clock_cycles(), t2 = global_time();
    y[0] = c2 - c;
    y[1] = t2 - t;
  });
  for (const Outcome& o : run_everywhere(*k, {{1}, {1}}, {buffer(std::vector<u32>{1, 100'000}), filled<u64>(3, 0)})) {
    CAPTURE(o.where);
    REQUIRE_FALSE(o.error);
    const auto y = from_bytes<u64>(o.bytes.at(1));
    CHECK(y[0] > 1000);
    CHECK(y[1] > 1000);
    CHECK(y[1] < 60'000'000'000);
  }
}

TEST_CASE("two calls are two readings, and one that nobody uses is none") {
  const auto k = kernel("readings", [](InOut<u64> y) {
    clock_cycles();
    y[0] = clock_cycles() + clock_cycles();
    y[1] = global_time() - global_time();
  });
  const ir::Kernel& prepared = (*k->prepared(ir::PrepareOptions::Mode::Unchecked))->kernel;
  CHECK(count(prepared, ir::Opcode::Clock) == 2);
  CHECK(count(prepared, ir::Opcode::GlobalTime) == 2);
}
