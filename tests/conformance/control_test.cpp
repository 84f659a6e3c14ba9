// Control flow with known results: loops with continue and break, carried variables, guards, switches, early returns.
#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// One thread, results in a small buffer that starts as 99.
template <class T>
void check_one(const char* name, void (*body)(Out<T>), const std::vector<T>& wanted) {
  CAPTURE(std::string(name));
  check_run(*made(record(name, body)), {{1}, {1}}, {filled<T>(wanted.size(), T(99))}, 0, wanted);
}

// Six sums of thread t, of loops that run n times.
void sums(const auto& n, const Val<u32>& t, const Out<u32>& out) {
  Var<u32> full = t, pattern = 0, until = 0, odd = 0, nested = t;
  Var<u32> a = 1, b = 0;
  for (auto i : range(n)) {
    full += 1;
    (void)i;
  }
  for (auto i : range(n)) { pattern += i & 3; }
  for (auto i : range(n)) {
    If (i == 5) { Break(); }
    until += i;
  }
  for (auto i : range(n)) {
    If (i % 2 == 0) { Continue(); }
    odd += i;
  }
  for (auto i : range(n)) {
    for (auto j : range(i)) { nested += j & 1; }
  }
  for (auto i : range(n)) {
    Val<u32> next = a + b + (i & t);
    b = a;
    a = next;
  }
  u32 o = 0;
  for (Val<u32> v : {Val<u32>(full), Val<u32>(pattern), Val<u32>(until), Val<u32>(odd), Val<u32>(nested), Val<u32>(a)})
    out[6 * t + o++] = v;
}

}  // namespace

TEST_CASE("continue in a loop that also has break goes on with the next iteration") {
  // Sum of the odd i below 10, ended by `stop` after the first.
  const auto k = kernel("continue_break", [](In<i32> stop, Out<i32> out) {
    auto t = global_id().x;
    If (t < stop.size()) {
      Var<i32> sum = 0;
      for (auto i : range(10)) {
        If (i % 2 == 0) { Continue(); }
        sum += cast<i32>(i);
        If (stop[t] != 0) { Break(); }
      }
      out[t] = sum;
    }
  });
  check_run<i32>(*k, {{1}, {7}}, {buffer<i32>({0, 1, 0, 1, 1}), filled<i32>(5, 99)}, 1, {25, 1, 25, 1, 1});
}

TEST_CASE("the same with while loops, and with the stop known while recording") {
  check_one<i32>("continue_while",
                 [](Out<i32> out) {
                   for (u32 stop = 0; stop < 2; ++stop) {
                     Var<i32> sum = 0, i = -1;
                     While (i < 9) {
                       ++i;
                       If (i % 2 == 0) { Continue(); }
                       sum += i;
                       If (Val<bool>(stop == 1)) { Break(); }
                     }
                     out[stop] = sum;
                   }
                 },
                 {25, 1});
}

TEST_CASE("a store just before continue happens") {
  const auto k = kernel("store_continue", [](In<i32> state, InOut<i32> x, InOut<i32> y) {
    for (auto p : range(1)) {
      If (state[p] == 0) {
        x[p] = 1;
        Continue();
      }
      If (state[p] != 0) { y[p] = 1; }
    }
  });
  for (i32 state : {0, 1}) {
    const auto outcomes = run_everywhere(*k, {{1}, {1}}, {buffer<i32>({state}), buffer<i32>({0}), buffer<i32>({0})});
    expect<i32>(outcomes, 1, {state == 0});
    expect<i32>(outcomes, 2, {state != 0});
  }
  const auto image = kernel("image", [](InOut<i32, 2> img) {
    for (auto i : range(img.extent(0))) {
      for (auto j : range(img.extent(1))) {
        img[i, j] = 0;
        If (i > 0 || j > 0) { Continue(); }
        img[i, j] = 1;
      }
    }
  });
  check_run<i32>(*image, {{1}, {1}}, {buffer<i32>({2, 2, 2, 2}, {2, 2})}, 0, {1, 0, 0, 0});
}

TEST_CASE("loop-carried variables that are assigned from each other take the old values") {
  check_one<i32>("fibonacci",
                 [](Out<i32> out) {
                   Var<i32> prev = 0, cur = 1;
                   for (auto i : range(10)) {
                     (void)i;
                     Val<i32> p = cur, c = prev + cur;
                     prev = p;
                     cur = c;
                   }
                   out[0] = prev;
                   out[1] = cur;
                 },
                 {55, 89});
  check_one<i32>("rotate",
                 [](Out<i32> out) {
                   Var<i32> a = 1, b = 3, c = 5;
                   for (auto i : range(3)) {
                     (void)i;
                     Val<i32> x = c, y = c, z = a;
                     a = x, b = y, c = z;
                   }
                   out[0] = a, out[1] = b, out[2] = c;
                 },
                 {5, 5, 1});
  const auto mixed = kernel("mixed_state", [](Out<i32> k_out, Out<f32> f_out, Out<i32> flip_out, Out<i64> w_out) {
    Var<i32> k = 0;
    Var<f32> f = 1.0f;
    Var<bool> flip = false;
    Var<i64> w = 0;
    for (auto i : range(5)) {
      (void)i;
      Val<i64> w2 = w + cast<i64>(k);
      k += 1;
      f = select(flip, f, f * 2);
      flip = !flip;
      w = w2;
    }
    k_out[0] = k, f_out[0] = f, flip_out[0] = cast<i32>(flip), w_out[0] = w;
  });
  const auto outcomes =
      run_everywhere(*mixed, {{1}, {1}}, {filled<i32>(1, 99), filled<f32>(1, 99), filled<i32>(1, 99), filled<i64>(1, 99)});
  expect<i32>(outcomes, 0, {5});
  expect<f32>(outcomes, 1, {8});
  expect<i32>(outcomes, 2, {1});
  expect<i64>(outcomes, 3, {10});
}

TEST_CASE("a condition guards the access on its right side, for && and for ||") {
  const std::vector<i32> a{0, 0, 0, 0, 0, 0, 0, 0, 0, 5}, idx{-1, 0, 9, 10, 2147483647};
  const auto guarded = kernel("guarded", [](In<i32> x, In<i32> index, Out<i32> out) {
    auto k = global_id().x;
    If (k < index.size()) {
      Val<i32> i = index[k];
      out[k] = select<i32>(i >= 0 && i < 10 && x[i] == 0, 1, 0);
    }
  });
  check_run<i32>(*guarded, {{1}, {33}}, {buffer(a), buffer(idx), filled<i32>(5, 99)}, 2, {0, 1, 0, 0, 0});
  const auto mirror = kernel("mirror", [](In<i32> x, In<i32> index, Out<i32> out) {
    auto k = global_id().x;
    If (k < index.size()) {
      Val<i32> i = index[k];
      out[k] = select<i32>(i < 0 || i >= 10 || x[i] != 0, 1, 0);
    }
  });
  check_run<i32>(*mirror, {{1}, {33}}, {buffer(a), buffer(idx), filled<i32>(5, 99)}, 2, {1, 0, 1, 1, 1});
  const auto condition = kernel("condition", [](In<i32> x, In<i32> index, Out<i32> out) {
    auto k = global_id().x;
    If (k < index.size()) {
      If (index[k] >= 0 && index[k] < 10 && x[index[k]] == 0) { out[k] = 1; }
      Else { out[k] = 0; }
    }
  });
  check_run<i32>(*condition, {{1}, {33}}, {buffer(a), buffer(idx), filled<i32>(5, 99)}, 2, {0, 1, 0, 0, 0});
}

TEST_CASE("a guard on the size of an absent buffer keeps its loads from running") {
  const auto k = kernel("absent", [](In<i32> maybe, In<i32> idx, Out<i32> out) {
    auto t = global_id().x;
    If (t < idx.size()) { out[t] = select<i32>(maybe.size() > 0 && idx[t] >= 0 && maybe[idx[t] % cast<i32>(maybe.size())] == 7, 1, 0); }
  });
  check_run<i32>(*k, {{1}, {33}}, {buffer<i32>({}), buffer<i32>({0, -1, 5}), filled<i32>(3, 99)}, 2, {0, 0, 0});
  check_run<i32>(*k, {{1}, {33}}, {buffer<i32>({1, 7}), buffer<i32>({0, -1, 5}), filled<i32>(3, 99)}, 2, {0, 0, 1});
}

TEST_CASE("what only the right side does is refused where it has an effect, or done under the left side where the author nests it") {
  // The documented way for an effect: a nested If.
  const auto k = kernel("effect", [](In<i32> left, InOut<u32> counter, Out<i32> out) {
    auto t = global_id().x;
    If (t < left.size()) {
      Var<bool> both = false;
      If (left[t] != 0) { both = counter.atomic_add(0, 1) < 1000; }
      out[t] = cast<i32>(both);
    }
  });
  const auto outcomes = run_everywhere(*k, {{1}, {7}}, {buffer<i32>({1, 0, 3, 0, 5}), filled<u32>(1, 0), filled<i32>(5, 99)});
  expect<u32>(outcomes, 1, {3});
  expect<i32>(outcomes, 2, {1, 0, 1, 0, 1});
  const auto refused = record("eager", [](In<i32> left, InOut<u32> counter, Out<i32> out) {
    out[0] = select<i32>(left[0] != 0 && counter.atomic_add(0, 1) < 1000, 1, 0);
  });
  CHECK(!refused.has_value());
}

TEST_CASE("&& and || of values have C++'s truth tables") {
  const auto k = kernel("truth", [](In<i32> a, In<i32> b, Out<i32> either, Out<i32> both) {
    auto t = global_id().x;
    If (t < a.size()) {
      either[t] = cast<i32>(a[t] != 0 || b[t] != 0);
      both[t] = cast<i32>(a[t] != 0 && b[t] != 0);
    }
  });
  const auto outcomes =
      run_everywhere(*k, {{1}, {7}}, {buffer<i32>({0, 0, 5, 5}), buffer<i32>({0, 7, 0, 7}), filled<i32>(4, 99), filled<i32>(4, 99)});
  expect<i32>(outcomes, 2, {0, 1, 1, 1});
  expect<i32>(outcomes, 3, {0, 0, 0, 1});
}

TEST_CASE("a switch takes the case of its value, a case of several labels, or the default, and does not fall through") {
  const auto k = kernel("cases", [](In<i32> x, Out<i32> out) {
    auto t = global_id().x;
    If (t < x.size()) {
      Var<i32> r = 99;
      Switch(x[t]) {
        Case(0) { r = 1; }
        Case(1, 2) { r = 3; }
        Case(-7) { r = 4; }
        Default { r = 5; }
      }
      out[t] = r;
    }
  });
  check_run<i32>(*k, {{1}, {33}}, {buffer<i32>({0, 1, 5, 2, -7, -1, 7}), filled<i32>(7, 98)}, 1, {1, 3, 5, 3, 4, 5, 5});
  const auto bare = kernel("no_default", [](In<u64> x, Out<i32> out) {
    auto t = global_id().x;
    If (t < x.size()) {
      Var<i32> r = 99;
      Switch(x[t]) {
        Case(0x100000000u) { r = 1; }
        Case(0) { r = 2; }
      }
      out[t] = r;
    }
  });
  check_run<i32>(*bare, {{1}, {33}}, {buffer<u64>({0, u64{1} << 32, 1, 3}), filled<i32>(4, 98)}, 1, {2, 1, 99, 99});
}

TEST_CASE("a switch whose value is known takes one case, and break and continue in it belong to the loop around it") {
  check_one<i32>("known_switch",
                 [](Out<i32> out) {
                   u32 o = 0;
                   for (i32 v : {0, 1, 5}) {
                     Var<i32> r = 99;
                     Switch(Val<i32>(v)) {
                       Case(0) { r = 1; }
                       Case(1) { r = 3; }
                       Default { r = 5; }
                     }
                     out[o++] = r;
                   }
                   Var<i32> sum = 0;
                   for (auto i : range<i32>(0, 10)) {
                     Switch(i) {
                       Case(2) { Continue(); }
                       Case(5) { Break(); }
                       Default { sum += 1; }
                     }
                     sum += 10 * i;
                   }
                   out[3] = sum;
                 },
                 {1, 3, 5, 84});
}

TEST_CASE("a loop stops at break with what it did before") {
  check_one<i32>("break_at",
                 [](Out<i32> out) {
                   for (auto i : range(20)) { out[i] = 0; }
                   for (auto i : range(20)) {
                     If (i > 3) { Break(); }
                     out[i] = 1;
                   }
                 },
                 {1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0});
  check_one<i32>("only_one",
                 [](Out<i32> out) {
                   out[0] = 99;
                   for (auto i : range<i32>(0, 5)) {
                     If (i != 1) { Continue(); }
                     out[0] = i;
                   }
                   out[1] = 99;
                   for (auto i : range<i32>(0, 5)) {
                     If (i == 3) { Break(); }
                     If (i != 1) { Continue(); }
                     out[1] = i;
                   }
                 },
                 {1, 1});
}

TEST_CASE("a thread that returns early does nothing more") {
  // out = 5 where the divisor is 0, else 4 after a division.
  const auto k = kernel("early_return", [](In<i32> divisor, Out<i32> out) {
    auto t = global_id().x;
    If (t >= divisor.size()) { Return(); }
    out[t] = 5;
    If (divisor[t] == 0) { Return(); }
    out[t] = 4 + (8 / divisor[t]) * 0;
  });
  check_run<i32>(*k, {{2}, {33}}, {buffer<i32>({0, 2, 0, 7}), filled<i32>(4, 99)}, 1, {5, 4, 5, 4});
  const auto in_loop = kernel("return_in_loop", [](In<u32> limit, InOut<u32> out) {
    auto t = global_id().x;
    If (t >= limit.size()) { Return(); }
    for (auto i : range(100)) {
      for (auto j : range(10)) {
        (void)j;
        If (i == limit[t]) { Return(); }
        out[t] += 1;
      }
    }
    out[t] = 1;
  });
  check_run<u32>(*in_loop, {{2}, {7}}, {buffer<u32>({0, 5, 99, 100, 3}), filled<u32>(5, 0)}, 1, {0, 50, 990, 1, 30});
}

TEST_CASE("a host condition decides while recording, and what follows a terminated scope is not recorded") {
  const auto make = [](bool known) {
    return known ? kernel("terminated",
                          [](Out<i32> out) {
                            out[0] = 5;
                            constexpr bool stop = true;
                            if (stop) Return();
                            if (!stop) out[0] = 6;
                          })
                 : kernel("went_on", [](Out<i32> out) { out[0] = 6; });
  };
  check_run<i32>(*make(true), {{1}, {1}}, {filled<i32>(1, 99)}, 0, {5});
  check_run<i32>(*make(false), {{1}, {1}}, {filled<i32>(1, 99)}, 0, {6});
}

TEST_CASE("a loop over a range ends without wrapping, whatever its bounds and step") {
  // How often it runs, and the last value.
  struct Row {
    i32 lo, hi, step;
    u32 count;
    i32 last;
  };
  constexpr i32 top = 2147483647, bottom = -top - 1;
  const Row rows[] = {{0, 10, 1, 10, 9},
                      {0, 10, 3, 4, 9},
                      {0, 9, 3, 3, 6},
                      {5, 5, 1, 0, 0},
                      {5, 4, 1, 0, 0},
                      {-3, 4, 2, 4, 3},
                      {top - 2, top, 1, 2, top - 1},
                      {top - 2, top, 2, 1, top - 2},
                      {top - 5, top, 4, 2, top - 1},
                      {bottom, bottom + 3, 2, 2, bottom + 2},
                      {bottom, top, top, 3, top - 1},
                      {0, top, 0x40000000, 2, 0x40000000}};
  std::vector<i32> lo, hi, step, last;
  std::vector<u32> count;
  for (const Row& r : rows)
    lo.push_back(r.lo), hi.push_back(r.hi), step.push_back(r.step), count.push_back(r.count), last.push_back(r.last);
  const auto k = kernel("ranges", [](In<i32> first, In<i32> end, In<i32> by, Out<u32> times, Out<i32> final) {
    auto t = global_id().x;
    If (t < first.size()) {
      Var<u32> n = 0;
      Var<i32> seen = 0;
      for (auto i : range(first[t], end[t], by[t])) {
        n += 1;
        seen = i;
      }
      times[t] = n;
      final[t] = seen;
    }
  });
  const auto size = static_cast<u32>(lo.size());
  const auto outcomes =
      run_everywhere(*k, {{1}, {33}}, {buffer(lo), buffer(hi), buffer(step), filled<u32>(size, 99), filled<i32>(size, 99)});
  expect(outcomes, 3, count);
  expect(outcomes, 4, last);
}

TEST_CASE("loops of known length give the same as loops of loaded length: whole, nested, broken, carried") {
  std::vector<u32> wanted;
  for (u32 t = 0; t < 33; ++t) {
    u32 nested = t, a = 1, b = 0;
    for (u32 i = 0; i < 10; ++i) {
      for (u32 j = 0; j < i; ++j) nested += j & 1;
      const u32 next = a + b + (i & t);
      b = a, a = next;
    }
    for (u32 v : {t + 10, 13u, 10u, 25u, nested, a}) wanted.push_back(v);
  }
  const auto known = kernel("trips_known", [](In<u32>, Out<u32> out) { sums(u32{10}, thread_id().x, out); });
  const auto loaded = kernel("trips_loaded", [](In<u32> trips, Out<u32> out) { sums(Val<u32>(trips[thread_id().x]), thread_id().x, out); });
  for (const auto& k : {known, loaded}) check_run(*k, {{1}, {33}}, {filled<u32>(33, 10), filled<u32>(33 * 6, 99)}, 1, wanted);
}

TEST_CASE("divergent loops nest: every thread does its own number of steps") {
  // Collatz steps, with an inner loop that each thread leaves at its own time.
  const u32 n = 100;
  std::vector<u32> wanted;
  for (u32 i = 0; i < n; ++i) {
    u32 x = i + 1, steps = 0;
    while (x != 1) {
      if (x % 2 == 0) {
        while (x % 2 == 0) x /= 2, ++steps;
      } else {
        x = 3 * x + 1, ++steps;
      }
    }
    wanted.push_back(steps);
  }
  const auto k = kernel("collatz", [](Out<u32> out) {
    auto t = global_id().x;
    If (t < out.size()) {
      Var<u32> x = t + 1, steps = 0;
      While (x != 1) {
        If (x % 2 == 0) {
          While (x % 2 == 0) {
            x /= 2;
            steps += 1;
          }
        }
        Else {
          x = 3 * x + 1;
          steps += 1;
        }
      }
      out[t] = steps;
    }
  });
  for (u32 block : {1u, 31u, 32u, 45u, 128u}) check_run(*k, {{(n + block - 1) / block}, {block}}, {filled<u32>(n, 99)}, 0, wanted);
}

TEST_CASE("select computes both sides and takes one") {
  const auto k = kernel("choose", [](In<i32> x, Out<i32> out) {
    auto t = global_id().x;
    If (t < x.size()) {
      Var<i32> evaluations = 0;
      evaluations += 1;
      Val<i32> a = x[t] * 2, b = x[t] / (x[t] - x[t]);  // a division by zero beside it does no harm
      out[t] = select(x[t] > 2, a, b) + evaluations - 1;
    }
  });
  check_run<i32>(*k, {{1}, {7}}, {buffer<i32>({1, 2, 3, 4}), filled<i32>(4, 99)}, 1, {-1, -1, 6, 8});
}

TEST_CASE("a uniform value read in a long loop stays the same for all") {
  // The sum over i of i % 3 for i below 1024, accumulated through memory that one thread writes between barriers.
  const auto k = kernel("accumulate", [](Out<u32> out) {
    Shared<u32> total(1);
    auto t = thread_id().x;
    If (t == 0) { total[0] = 0; }
    barrier();
    for (auto i : range(1024)) {
      Val<u32> before = total[0];
      barrier();
      If (t == i % 45) { total[0] = before + i % 3; }
      barrier();
    }
    out[t] = total[0];
  });
  check_run(*k, {{1}, {45}}, {filled<u32>(45, 99)}, 0, std::vector<u32>(45, 341 * 3));
}
