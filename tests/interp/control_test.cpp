#include <cmath>
#include <fstream>
#include <sstream>

#include "interp/fixture.h"

using namespace kiln;
using namespace kiln::interp::testing;
using U = std::vector<std::uint32_t>;

namespace {

// out[i] = what the body leaves in slot r, one thread each.
std::string per_thread(const std::string& body) {
  return "%i = global_id.x\n%zero = const 0 : u32\n%one = const 1 : u32\n%two = const 2 : u32\n%three = const 3 : u32\n%n = const 10 : "
         "u32\n" +
         body + "\n%r = get r\nstore out[%i], %r";
}
const std::string kOut = "buffer out : u32[*] inout\nslot r : u32\nslot t : u32\nslot b : bool\n";

}  // namespace

TEST_CASE("saxpy by hand computes a * x + y and leaves the rest alone") {
  std::ifstream in(KILN_SOURCE_DIR "/samples/kir/saxpy.kir");
  std::stringstream text;
  text << in.rdbuf();
  std::vector<float> x(1000), y(1000);
  for (int i = 0; i < 1000; ++i) {
    x[i] = static_cast<float>(i);
    y[i] = 1.0f / static_cast<float>(i + 1);
  }
  Case c(text.str());
  c.buffer(x).buffer(y).scalar(bits(2.5f)).threads(256, 4).good();
  const auto result = c.values<float>(1);
  for (int i = 0; i < 1000; ++i) CHECK(result[i] == std::fma(2.5f, x[i], y[i]));
  Case shorter(text.str());
  shorter.buffer(std::vector<float>(999)).buffer(y).scalar(0).threads(256, 4);
  CHECK(shorter.misuse() == "kernel 'saxpy': require(x.size() >= y.size()) is false");
}

TEST_CASE("the arms of an if see their own lanes and all meet behind it") {
  Case c("buffer out : u32[*] inout", R"(
    %i = thread_id.x
    %ten = const 10 : u32
    %t = const true : bool
    %n = const 32 : u32
    %m = const 64 : u32
    %j = add %i, %n
    %k = add %i, %m
    %low = lt %i, %ten
    if %low {
      %b = ballot %t
      store out[%i], %b
    } else {
      %b2 = ballot %t
      store out[%i], %b2
      %odd = const 1 : u32
      %bit = and %i, %odd
      %is = cast %bit : bool
      if %is { return }
      %b3 = ballot %t
      store out[%j], %b3
    }
    %b4 = ballot %t
    store out[%k], %b4)");
  c.buffer(u32s(96)).threads(32).good();
  const U out = c.values<std::uint32_t>();
  for (unsigned i = 0; i < 32; ++i) {
    CHECK(out[i] == (i < 10 ? 0x3ffu : 0xfffffc00u));
    CHECK(out[32 + i] == (i < 10 || i % 2 == 1 ? 0u : 0x55555400u));
    CHECK(out[64 + i] == (i < 10 || i % 2 == 0 ? 0x555557ffu : 0u));
  }
}

TEST_CASE("break, continue and return take their lanes out of the loop, the iteration and the kernel") {
  // Each iteration adds the ballot of who is there: lane i breaks at iteration i, odd lanes skip the second half, lane 5 returns at
  // iteration 2.
  Case c(kOut, R"(
    %i = thread_id.x
    %zero = const 0 : u32
    %one = const 1 : u32
    %two = const 2 : u32
    %five = const 5 : u32
    %n = const 8 : u32
    %t = const true : bool
    %bit = and %i, %one
    %odd = cast %bit : bool
    for %k = %zero, %n, %one {
      %over = gt %k, %i
      if %over { break }
      %is5 = eq %i, %five
      %at2 = eq %k, %two
      %gone = and %is5, %at2
      if %gone { return }
      %b = ballot %t
      %r = get r
      %s = add %r, %b
      set r, %s
      if %odd { continue }
      %b2 = ballot %t
      %r2 = get r
      %s2 = add %r2, %b2
      set r, %s2
    }
    %r3 = get r
    store out[%i], %r3)");
  c.buffer(u32s(8)).threads(8).good();
  U expected(8);
  for (unsigned i = 0; i < 8; ++i) {
    std::uint32_t sum = 0;
    for (unsigned k = 0; k < 8 && k <= i; ++k) {
      unsigned all = 0, even = 0;
      for (unsigned lane = 0; lane < 8; ++lane) {
        if (k > lane || (lane == 5 && k >= 2)) continue;
        all |= 1u << lane;
        if (lane % 2 == 0) even |= 1u << lane;
      }
      sum += all + (i % 2 == 0 ? even : 0);
    }
    expected[i] = i == 5 ? 0 : sum;
  }
  CHECK(c.values<std::uint32_t>() == expected);
}

TEST_CASE("continue in a loop that also has break") {
  for (const bool stop : {false, true}) {
    Case c(kOut, per_thread(std::string("%stop = const ") + (stop ? "true" : "false") + R"( : bool
      for %k = %zero, %n, %one {
        %bit = and %k, %one
        %odd = cast %bit : bool
        %even = not %odd
        if %even { continue }
        %s = get r
        %s2 = add %s, %k
        set r, %s2
        if %stop { break }
      })"));
    c.buffer(u32s(1)).threads(1).good();
    CHECK(c.values<std::uint32_t>() == U{stop ? 1u : 25u});
  }
}

TEST_CASE("loop-carried locals assigned from each other") {
  Case c("buffer out : u32[*] out\nslot prev : u32\nslot cur : u32", R"(
    %zero = const 0 : u32
    %one = const 1 : u32
    %n = const 10 : u32
    set cur, %one
    for %k = %zero, %n, %one {
      %p = get prev
      %c = get cur
      %s = add %p, %c
      set prev, %c
      set cur, %s
    }
    %p2 = get prev
    %c2 = get cur
    store out[%zero], %p2
    store out[%one], %c2)");
  c.buffer(u32s(2)).threads(1).good();
  CHECK(c.values<std::uint32_t>() == U{55, 89});
}

TEST_CASE("a while tests before each iteration, and continue goes back to the test") {
  // Thread i counts its odd steps down from i.
  Case c(kOut, per_thread(R"(
    set t, %i
    while {
      %v = get t
      %c = gt %v, %zero
      yield %c
    } do {
      %w = get t
      %w1 = sub %w, %one
      set t, %w1
      %bit = and %w, %one
      %odd = cast %bit : bool
      %even = not %odd
      if %even { continue }
      %x = get r
      %x1 = add %x, %one
      set r, %x1
    })"));
  c.buffer(u32s(40)).threads(40).good();
  for (unsigned i = 0; i < 40; ++i) CHECK(c.values<std::uint32_t>()[i] == (i + 1) / 2);
}

TEST_CASE("break leaves the innermost loop only, through ifs and switches") {
  Case c(kOut, per_thread(R"(
    for %k = %zero, %three, %one {
      for %l = %zero, %n, %one {
        %v = add %l, %i
        switch %v {
          case 4 { break }
          case 5 { continue }
          default {
            %x = get r
            %x1 = add %x, %one
            set r, %x1
          }
        }
      }
    })"));
  c.buffer(u32s(6)).threads(6).good();
  CHECK(c.values<std::uint32_t>() == U{12, 9, 6, 3, 0, 27});
}

TEST_CASE("a switch takes one case or the default, and its lanes meet behind it") {
  Case c("buffer in : i32[*] in\nbuffer out : u32[*] out", R"(
    %i = thread_id.x
    %v = load in[%i]
    %t = const true : bool
    switch %v {
      case -1 {
        %a = ballot %t
        store out[%i], %a
      }
      case 7 { return }
      case 3 {
      }
      default {
        %d = ballot %t
        store out[%i], %d
      }
    }
    %four = const 4 : u32
    %j = add %i, %four
    %e = ballot %t
    store out[%j], %e)");
  c.buffer(std::vector<std::int32_t>{-1, 7, 3, 9}).buffer(u32s(8)).threads(4).good();
  CHECK(c.values<std::uint32_t>(1) == U{1, 0, 0, 8, 13, 0, 13, 13});
}

TEST_CASE("for loops end below hi and never wrap") {
  const struct {
    const char* type;
    std::uint64_t lo, hi, step;
    std::uint32_t count;
    std::uint64_t last;
  } table[] = {
      {"u32", 0, 10, 3, 4, 9},
      {"u32", 5, 5, 1, 0, 0},
      {"u32", 6, 5, 1, 0, 0},
      {"u32", 0xfffffffc, 0xffffffff, 2, 2, 0xfffffffe},
      {"u32", 0xfffffffe, 0xffffffff, 0xffffffff, 1, 0xfffffffe},
      {"u32", 0, 0xffffffff, 0x80000000, 2, 0x80000000},
      {"i32", 0xfffffffd, 3, 2, 3, 1},
      {"i32", 0x80000000, 0x7fffffff, 0x7fffffff, 3, 0x7ffffffe},
      {"i32", 3, 0xfffffffd, 1, 0, 0},
      {"i64", 0x8000000000000000, 0x7fffffffffffffff, 0x7fffffffffffffff, 3, 0x7ffffffffffffffe},
      {"u64", 0xfffffffffffffff0, 0xffffffffffffffff, 15, 1, 0xfffffffffffffff0},
      {"u64", 0xfffffffffffffff0, 0xffffffffffffffff, 14, 2, 0xfffffffffffffffe},
      // Steps that are only known at run time to be wrong: once at most.
      {"u32", 0, 10, 0, 1, 0},
      {"i32", 0, 10, 0xffffffff, 1, 0},
      {"i32", 10, 0, 0xffffffff, 0, 0},
  };
  for (const auto& row : table) {
    const std::string t = row.type;
    CAPTURE(t);
    CAPTURE(row.lo);
    CAPTURE(row.step);
    Case c(
        "buffer out : u64[*] out\nscalar lo : " + t + "\nscalar hi : " + t + "\nscalar step : " + t + "\nslot count : u64\nslot last : u64",
        R"(
      %lo = param lo
      %hi = param hi
      %step = param step
      %one = const 1 : u64
      %z = const 0 : u32
      %o = const 1 : u32
      for %i = %lo, %hi, %step {
        %c = get count
        %c1 = add %c, %one
        set count, %c1
        %v = cast %i : u64
        set last, %v
      }
      %c2 = get count
      %l2 = get last
      store out[%z], %c2
      store out[%o], %l2)");
    c.buffer(std::vector<std::uint64_t>(2)).scalar(row.lo).scalar(row.hi).scalar(row.step).threads(1).good();
    const auto out = c.values<std::uint64_t>();
    CHECK(out[0] == row.count);
    if (t == "i32") CHECK(static_cast<std::uint32_t>(out[1]) == static_cast<std::uint32_t>(row.last));
    else CHECK(out[1] == row.last);
  }
}

TEST_CASE("a loop without end reaches the step limit") {
  Case c("", "%t = const true : bool\nwhile @0:9 {\nyield %t\n} do {\n}");
  c.verified = false;
  c.launch.step_limit = 10000;
  CHECK(c.misuse().find("the step limit of 10000 was reached") != std::string::npos);
}

TEST_CASE("an operation that only prepare expands is reported, not guessed") {
  Case c("buffer out : f32[*] out", "%x = const 0.5 : f32\n%e = exp %x\n%z = const 0 : u32\nstore out[%z], %e");
  c.verified = false;
  c.buffer(std::vector<float>(1)).threads(1);
  CHECK(c.misuse().find("exp (operation 1) has no evaluation; was the kernel prepared?") != std::string::npos);
}

TEST_CASE("indices and sizes are those of the launch") {
  Case c("buffer out : u64[*, *] inout", R"(
    %x = global_id.x : u64
    %y = global_id.y : u64
    %z = thread_id.z
    %w = warp_id
    %l = lane_id
    %bx = block_id.x
    %by = block_id.y
    %dx = block_dim.x
    %gy = grid_dim.y
    %s = size out : u64
    %e = extent out.1 : u64
    %k1 = const 1000 : u64
    %a = cast %w : u64
    %b = cast %l : u64
    %v0 = mul %a, %k1
    %v1 = add %v0, %b
    %m = const 64 : u64
    %s1 = mul %s, %k1
    %v2 = add %v1, %s1
    store out[%y, %x], %v2)");
  c.buffer(std::vector<std::uint64_t>(160), {8, 20});
  c.launch.grid[0] = 2;
  c.launch.grid[1] = 2;
  c.launch.block[0] = 10;
  c.launch.block[1] = 4;
  c.good();
  const auto out = c.values<std::uint64_t>();
  for (unsigned y = 0; y < 8; ++y) {
    for (unsigned x = 0; x < 20; ++x) {
      const unsigned t = x % 10 + 10 * (y % 4);
      CHECK(out[20 * y + x] == 160000 + 1000 * (t / 32) + t % 32);
    }
  }
}
