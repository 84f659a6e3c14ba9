// Barriers of a block, plain and voting, in every kind of uniform control flow and with threads that have returned.
#include <functional>

#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Every thread shows its neighbour what it has: after a barrier each reads what the next one wrote.
template <class S>
Val<u32> neighbour(const S& s, const Val<u32>& t, const Val<u32>& n, const Val<u32>& mine) {
  s[t] = mine;
  barrier();
  Val<u32> theirs = s[(t + 1) % n];
  barrier();
  return theirs;
}
Val<u32> threads_of_block() { return block_dim().x * block_dim().y * block_dim().z; }

// One result a thread, from a body that sees its linear number; `wanted` says the same in C++.
void check_shapes(const char* name, void (*body)(In<u32>, Out<u32>), const std::vector<u32>& args,
                  const std::function<u32(u32 t, u32 n)>& wanted, const std::vector<Dim3>& shapes = block_shapes()) {
  CAPTURE(std::string(name));
  const auto k = made(record(name, body));
  for (const Dim3& block : shapes) {
    CAPTURE(shown(block));
    const u32 n = threads(block);
    std::vector<u32> results;
    for (u32 b = 0; b < 2; ++b) {
      for (u32 t = 0; t < n; ++t) results.push_back(wanted(t, n));
    }
    check_run(*k, {{2}, block}, {buffer(args), filled<u32>(2 * n, 99)}, 1, results, {.levels = block.x == 45});  // each is a compilation
  }
}
void put(const Out<u32>& out, const Val<u32>& value) { out[block_id().x * threads_of_block() + linear_thread()] = value; }

}  // namespace

TEST_CASE("a barrier shows every thread what the others wrote before it") {
  check_shapes(
      "neighbours",
      [](In<u32>, Out<u32> out) {
        Shared<u32> s(128);
        auto t = linear_thread(), n = threads_of_block();
        put(out, neighbour(s, t, n, t * 3 + 1));
      },
      {0}, [](u32 t, u32 n) { return (t + 1) % n * 3 + 1; });
}

TEST_CASE("a barrier stands in an if with a uniform condition, taken or not") {
  for (u32 taken : {0u, 1u}) {
    check_shapes(
        "in_if",
        [](In<u32> p, Out<u32> out) {
          Shared<u32> s(128);
          auto t = linear_thread(), n = threads_of_block();
          Var<u32> r = t;
          If (p[0] != 0) { r = neighbour(s, t, n, t * 2); }
          Else { r += 1000; }
          put(out, r);
        },
        {taken}, [taken](u32 t, u32 n) { return taken ? (t + 1) % n * 2 : t + 1000; });
  }
}

TEST_CASE("a barrier stands in for and while loops of uniform length, nested ones too") {
  // A rotation by one in each of rounds * 3 steps, then by one in each of `rounds`.
  check_shapes(
      "in_loops",
      [](In<u32> p, Out<u32> out) {
        Shared<u32> s(128);
        auto t = linear_thread(), n = threads_of_block();
        Var<u32> r = t * 7;
        for (auto i : range(p[0])) {
          for (auto j : range(3)) {
            r = neighbour(s, t, n, r);
            (void)j;
          }
          r += i;
        }
        Var<u32> left = p[0];
        While (left > 0) {
          r = neighbour(s, t, n, r);
          left -= 1;
        }
        put(out, r);
      },
      {4}, [](u32 t, u32 n) { return (t + 16) % n * 7 + 6; });
}

TEST_CASE("a barrier stands in a switch with a uniform value") {
  for (u32 which : {0u, 1u, 2u, 9u}) {
    check_shapes(
        "in_switch",
        [](In<u32> p, Out<u32> out) {
          Shared<u32> s(128);
          auto t = linear_thread(), n = threads_of_block();
          Var<u32> r = 0;
          Switch(p[0]) {
            Case(0) { r = neighbour(s, t, n, t); }
            Case(1, 2) { r = neighbour(s, t, n, t + 500) + p[0]; }
            Default { r = 77; }
          }
          put(out, r);
        },
        {which}, [which](u32 t, u32 n) { return which == 0  ? (t + 1) % n
                                                : which < 3 ? (t + 1) % n + 500 + which
                                                            : 77; },
        {{33}, {45}, {5, 7}});
  }
}

TEST_CASE("a uniform break and continue leave a loop with barriers together") {
  check_shapes(
      "break_together",
      [](In<u32> p, Out<u32> out) {
        Shared<u32> s(128);
        auto t = linear_thread(), n = threads_of_block();
        Var<u32> r = t;
        for (auto i : range(10)) {
          If (i == p[0]) { Break(); }
          If (i % 2 == 1) { Continue(); }
          r = neighbour(s, t, n, r);
        }
        put(out, neighbour(s, t, n, r));
      },
      {5}, [](u32 t, u32 n) { return (t + 4) % n; });
}

TEST_CASE("barriers under uniform conditions inside nested loops run each part as often as it says") {
  const auto k = kernel("nested_barriers", [](In<i32> p, InOut<u32> before, InOut<u32> after) {
    auto t = thread_id().x;
    Val<i32> a = p[0], b = p[1];
    for (auto o : range(2)) {
      (void)o;
      for (auto n : range(2)) {
        (void)n;
        before[t] += 1;
        If (b > a) { barrier(); }
        If (a > 0) { barrier(); }
        after[t] += 1;
      }
    }
    If (a > 0) { barrier(); }
  });
  for (const auto& [p, q] : {std::pair{1, 1}, {1, 2}, {0, 1}, {0, 0}}) {
    CAPTURE(p);
    CAPTURE(q);
    for (u32 block : {4u, 33u, 45u}) {
      const auto outcomes = run_everywhere(*k, {{1}, {block}}, {buffer<i32>({p, q}), filled<u32>(block, 0), filled<u32>(block, 0)});
      expect(outcomes, 1, std::vector<u32>(block, 4));
      expect(outcomes, 2, std::vector<u32>(block, 4));
    }
  }
}

TEST_CASE("threads that have returned no longer count at a barrier") {
  // Threads from `alive` on return; the others go on meeting.
  check_shapes(
      "some_returned",
      [](In<u32> p, Out<u32> out) {
        Shared<u32> s(128);
        auto t = linear_thread(), n = threads_of_block();
        Val<u32> alive = (n + 1) / 2 + p[0];
        put(out, 12345);
        If (t >= alive) { Return(); }
        s[t] = t * 5;
        barrier();
        Var<u32> r = s[(t + 1) % alive];
        barrier();
        If (t % 2 == 1) { Return(); }
        s[t] = r;
        barrier();
        put(out, s[(t + 2) % ((alive + 1) / 2 * 2)] + t);
      },
      {0},
      [](u32 t, u32 n) {
        const u32 alive = (n + 1) / 2;
        if (t >= alive || t % 2 == 1) return 12345u;
        const u32 from = (t + 2) % ((alive + 1) / 2 * 2);
        return (from + 1) % alive * 5 + t;
      });
}

TEST_CASE("whole warps that have returned no longer count either") {
  const auto k = kernel("warps_returned", [](In<u32> which, Out<u32> out) {
    auto t = thread_id().x;
    Shared<u32> s(1);
    If (t == 0) { s[0] = 0; }
    barrier();
    out[t] = 99;
    If ((which[0] >> t / 32 & 1) != 0) { Return(); }
    s.atomic_add(0, 1);
    barrier();
    out[t] = s[0];
  });
  for (u32 gone : {0u, 1u, 2u, 5u, 7u, 8u, 15u}) {
    CAPTURE(gone);
    std::vector<u32> wanted(100, 99);
    u32 count = 0;
    for (u32 t = 0; t < 100; ++t) count += (gone >> t / 32 & 1) == 0;
    for (u32 t = 0; t < 100; ++t) {
      if ((gone >> t / 32 & 1) == 0) wanted[t] = count;
    }
    check_run(*k, {{1}, {100}}, {filled<u32>(1, gone), filled<u32>(100, 98)}, 1, wanted);
  }
}

TEST_CASE("block votes: any, all and the number of threads that say true") {
  // Row by row: nobody, thread 0, the last, the even ones, all; with and without returned threads.
  const auto k = kernel("votes", [](In<u32> row, Out<u32> out) {
    auto t = linear_thread(), n = threads_of_block();
    Val<u32> r = row[0];
    If (row[1] != 0 && t % 3 == 1) { Return(); }
    auto says = (r == 1 && t == 0) || (r == 2 && t == n - 1) || (r == 3 && t % 2 == 0) || r == 4;
    auto any = barrier_any(says), all = barrier_all(says);
    auto count = barrier_count(says);
    out[3 * t] = cast<u32>(any);
    out[3 * t + 1] = cast<u32>(all);
    out[3 * t + 2] = count;
  });
  for (const Dim3& block : block_shapes()) {
    CAPTURE(shown(block));
    const u32 n = threads(block);
    for (u32 row = 0; row <= 4; ++row) {
      for (u32 some = 0; some < 2; ++some) {
        CAPTURE(row);
        CAPTURE(some);
        const auto there = [&](u32 t) { return some == 0 || t % 3 != 1; };
        u32 count = 0, all = 0;
        for (u32 t = 0; t < n; ++t) {
          if (!there(t)) continue;
          ++all;
          count += (row == 1 && t == 0) || (row == 2 && t == n - 1) || (row == 3 && t % 2 == 0) || row == 4;
        }
        std::vector<u32> wanted(3 * n, 99);
        for (u32 t = 0; t < n; ++t) {
          if (there(t)) wanted[3 * t] = count > 0, wanted[3 * t + 1] = count == all, wanted[3 * t + 2] = count;
        }
        check_run(*k, {{1}, block}, {buffer<u32>({row, some}), filled<u32>(3 * n, 99)}, 1, wanted,
                  {.checked = row == 3, .unchecked = row != 3, .levels = block.x == 45});
      }
    }
  }
}

TEST_CASE("what a vote gives is uniform: it may guard a barrier, and end a loop that has one") {
  // A relaxation: every thread moves toward its neighbour's value until nobody changes.
  const auto k = kernel("relax", [](In<u32> x, Out<u32> out) {
    Shared<u32> s(128);
    auto t = thread_id().x, n = x.size();
    s[t] = x[t];
    barrier();
    Var<bool> changed = true;
    While (barrier_any(changed)) {
      Val<u32> mine = s[t], left = s[(t + n - 1) % n];
      barrier();
      changed = left > mine;
      s[t] = max(mine, left);
      barrier();
    }
    out[t] = s[t];
  });
  std::vector<u32> x(45);
  for (u32 i = 0; i < 45; ++i) x[i] = i * 37 % 45;
  check_run(*k, {{1}, {45}}, {buffer(x), filled<u32>(45, 99)}, 1, std::vector<u32>(45, 44));
}

TEST_CASE("block_uniform gives all threads one thread's value and lets it guard a barrier") {
  check_shapes(
      "uniform",
      [](In<u32> p, Out<u32> out) {
        Shared<u32> s(128);
        auto t = linear_thread(), n = threads_of_block();
        Val<u32> same = block_uniform(p[0] + t * 0);
        Var<u32> r = 0;
        for (auto i : range(same)) { r += neighbour(s, t, n, t) * (i + 1); }
        put(out, r);
      },
      {3}, [](u32 t, u32 n) { return (t + 1) % n * 6; }, {{1}, {33}, {45}, {5, 7}});
  // One value of those given, the same for all threads.
  const auto k = kernel("one_of", [](Out<f32> out) {
    auto t = thread_id().x;
    out[t] = block_uniform(cast<f32>(t) + 0.5f);
  });
  for (const Outcome& o : run_everywhere(*k, {{1}, {45}}, {filled<f32>(45, 99)})) {
    CAPTURE(o.where);
    REQUIRE(!o.error);
    const auto got = from_bytes<f32>(o.bytes[0]);
    for (f32 v : got) CHECK(v == got[0]);
    CHECK(got[0] >= 0.5f);
    CHECK(got[0] <= 44.5f);
    CHECK(got[0] - 0.5f == static_cast<f32>(static_cast<u32>(got[0])));
  }
}

TEST_CASE("sections of one thread between barriers follow one another") {
  const auto k = kernel("sections", [](Out<u32> out) {
    Shared<u32> s(1);
    auto t = thread_id().x;
    If (t % 32 == 0 && t == 0) { s[0] = 5; }
    barrier();
    If (t == 0) { s[0] = s[0] * 2; }
    barrier();
    out[t] = s[0] * t;
  });
  for (u32 block : {32u, 45u, 128u}) {
    std::vector<u32> wanted;
    for (u32 t = 0; t < block; ++t) wanted.push_back(10 * t);
    check_run(*k, {{1}, {block}}, {filled<u32>(block, 99)}, 0, wanted);
  }
}

TEST_CASE("locals, loop counters and local arrays keep their values over barriers, for each thread its own") {
  check_shapes(
      "carried",
      [](In<u32> p, Out<u32> out) {
        Shared<u32> s(128);
        Local<u32, 4> mine;
        auto t = linear_thread(), n = threads_of_block();
        Var<f64> d = cast<f64>(t) * 0.5;
        Var<bool> flag = t % 3 == 0;
        for (auto i : range(4)) { mine[i] = t * 10 + i; }
        Var<u32> r = 0;
        for (auto i : range(p[0])) {
          Val<u32> theirs = neighbour(s, t, n, mine[i % 4]);
          If (flag) { r += theirs; }
          Else { r += 1; }
          flag = flag ^ true;
          d = d + 1.0;
          mine[i % 4] = theirs;
        }
        put(out, r + cast<u32>(d * 2.0) + mine[p[0] % 4]);
      },
      {6},
      [](u32 t, u32 n) {
        u32 r = 0, after = 0;
        for (u32 i = 0; i < 6; ++i) {
          // Slot i % 4 has been passed on i / 4 times before.
          const u32 theirs = (t + 1 + i / 4) % n * 10 + i % 4;
          r += (t % 3 == 0) == (i % 2 == 0) ? theirs : 1;
          if (i % 4 == 2) after = theirs;
        }
        return r + t + 12 + after;
      });
}

TEST_CASE("a barrier orders buffers among the threads of a block too") {
  const auto k = kernel("through_buffer", [](InOut<u32> m) {
    auto t = thread_id().x, base = block_id().x * 45;
    m[base + t] = t + 1;
    barrier();
    Val<u32> theirs = m[base + (t + 7) % 45];
    barrier();
    m[base + t] = theirs * 2;
  });
  std::vector<u32> wanted;
  for (u32 b = 0; b < 3; ++b) {
    for (u32 t = 0; t < 45; ++t) wanted.push_back(((t + 7) % 45 + 1) * 2);
  }
  check_run(*k, {{3}, {45}}, {filled<u32>(135, 0)}, 0, wanted);
}

TEST_CASE("a barrier that not all threads may reach is refused with the condition's line") {
  const Result<ir::Kernel> bad[] = {
      record("in_divergent_if",
             [](In<u32> p, Out<u32> out) {
               If (p[thread_id().x] > 0) { barrier(); }
               out[thread_id().x] = 1;
             }),
      record("in_divergent_loop",
             [](In<u32> p, Out<u32> out) {
               for (auto i : range(p[thread_id().x])) {
                 barrier();
                 (void)i;
               }
               out[thread_id().x] = 1;
             }),
      record("after_divergent_break",
             [](In<u32> p, Out<u32> out) {
               for (auto i : range(10)) {
                 If (p[thread_id().x] == i) { Break(); }
                 barrier();
               }
               out[thread_id().x] = 1;
             }),
      record("after_divergent_continue",
             [](In<u32> p, Out<u32> out) {
               for (auto i : range(10)) {
                 If (p[thread_id().x] == i) { Continue(); }
                 barrier();
               }
               out[thread_id().x] = 1;
             }),
  };
  for (const auto& k : bad) {
    REQUIRE(k.has_value());
    CAPTURE(k->name);
    const Variant variant(*k);
    const auto prepared = variant.prepared();
    REQUIRE(!prepared.has_value());
    CHECK(prepared.error().text().find("barrier") != std::string::npos);
    CHECK(prepared.error().text().find("barriers_test.cpp:") != std::string::npos);
  }
}
