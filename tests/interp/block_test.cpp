#include "interp/fixture.h"

using namespace kiln;
using namespace kiln::interp::testing;
using U = std::vector<std::uint32_t>;

namespace {

const std::string kReverse = R"(
    %i = thread_id.x
    %n = block_dim.x
    %one = const 1 : u32
    %last = sub %n, %one
    %j = sub %last, %i
    store s[%i], %i
    BARRIER
    %v = load s[%j]
    store out[%i], %v)";

std::string reverse(const std::string& barrier) {
  std::string text = kReverse;
  return text.replace(text.find("BARRIER"), 7, barrier);
}

}  // namespace

TEST_CASE("a barrier lets threads of other warps see what was stored") {
  Case c("buffer out : u32[*] out\nshared s : u32[80]", reverse("barrier"));
  c.buffer(u32s(80)).threads(80).good();
  for (unsigned i = 0; i < 80; ++i) CHECK(c.values<std::uint32_t>()[i] == 79 - i);
}

TEST_CASE("barriers in loops and under uniform conditions") {
  // HD-CTL-4: before and after are counted per thread; every p and q.
  for (const auto& [p, q] : {std::pair{1, 1}, {1, 2}, {0, 1}, {0, 0}}) {
    Case c("buffer before : u32[*] inout\nbuffer after : u32[*] inout\nscalar p : i32\nscalar q : i32", R"(
      %t = thread_id.x
      %zero = const 0 : i32
      %one = const 1 : i32
      %two = const 2 : i32
      %u = const 1 : u32
      %p = param p
      %q = param q
      %qp = gt %q, %p
      %p0 = gt %p, %zero
      for %o = %zero, %two, %one {
        for %n = %zero, %two, %one {
          %b = load before[%t]
          %b1 = add %b, %u
          store before[%t], %b1
          if %qp { barrier }
          if %p0 { barrier }
          %a = load after[%t]
          %a1 = add %a, %u
          store after[%t], %a1
        }
      }
      if %p0 { barrier })");
    c.buffer(u32s(40)).buffer(u32s(40)).scalar(p).scalar(q).threads(40).good();
    CHECK(c.values<std::uint32_t>(0) == U(40, 4));
    CHECK(c.values<std::uint32_t>(1) == U(40, 4));
  }
}

TEST_CASE("block votes count the threads that have not returned") {
  Case c("buffer out : u32[*] inout\nscalar gone : u32", R"(
    %i = thread_id.x
    %one = const 1 : u32
    %two = const 2 : u32
    %three = const 3 : u32
    %four = const 4 : u32
    %bit = and %i, %one
    %odd = cast %bit : bool
    %g = param gone
    %leaves = lt %i, %g
    if %leaves { return }
    %count = barrier_count %odd
    %any = barrier_any %odd
    %all = barrier_all %odd
    %uni = block_uniform %i
    %base = mul %i, %four
    %x1 = cast %any : u32
    %x2 = cast %all : u32
    store out[%base], %count
    %b1 = add %base, %one
    store out[%b1], %x1
    %b2 = add %base, %two
    store out[%b2], %x2
    %b3 = add %base, %three
    store out[%b3], %uni)");
  SUBCASE("nobody is gone") {
    c.buffer(u32s(4 * 72)).scalar(0).threads(72).good();
    CHECK(c.values<std::uint32_t>()[0] == 36);
    CHECK(c.values<std::uint32_t>()[4 * 71 + 1] == 1);
    CHECK(c.values<std::uint32_t>()[4 * 71 + 2] == 0);
    CHECK(c.values<std::uint32_t>()[4 * 71 + 3] == 0);
  }
  SUBCASE("a warp and a bit are gone") {
    c.buffer(u32s(4 * 72)).scalar(71).threads(72).good();
    const U out = c.values<std::uint32_t>();
    CHECK(U(out.end() - 8, out.end()) == U{0, 0, 0, 0, 1, 1, 1, 71});
  }
  SUBCASE("all are gone") {
    c.buffer(u32s(4 * 72)).scalar(72).threads(72).good();
    CHECK(c.values<std::uint32_t>() == u32s(4 * 72));
  }
}

TEST_CASE("a barrier that not all threads reach is reported, not waited for") {
  const struct {
    const char* body;
  } table[] = {
      {"%c = lt %i, %k\nif %c {\nbarrier\n}"},                     // whole warps stay away
      {"%c = lt %i, %five\nif %c {\nbarrier\n}"},                  // lanes of a warp stay away
      {"for %j = %zero, %w, %one {\nbarrier\n}"},                  // another number of iterations
      {"%c = lt %i, %k\nif %c {\nbarrier\n} else {\nbarrier\n}"},  // two barriers
  };
  for (const auto& row : table) {
    CAPTURE(row.body);
    Case c(
        "",
        std::string(
            "%i = thread_id.x\n%w = warp_id\n%zero = const 0 : u32\n%one = const 1 : u32\n%five = const 5 : u32\n%k = const 32 : u32\n") +
            row.body);
    c.verified = false;
    c.threads(64);
    CHECK(c.misuse().find("divergent barrier") != std::string::npos);
  }
}

TEST_CASE("blocks run in ascending order, each with fresh shared and local memory") {
  Case c("buffer out : u32[*] inout\nbuffer next : u32[*] inout\nshared s : u32[1]\nlocal l : u32[1]\nslot r : u32", R"(
    %zero = const 0 : u32
    %one = const 1 : u32
    %b = block_id.x
    %turn = atomic_add next[%zero], %one
    %r = get r
    store s[%zero], %turn
    store l[%zero], %r
    set r, %one
    %v = load s[%zero]
    %w = load l[%zero]
    %x = add %v, %w
    store out[%b], %x)");
  c.buffer(u32s(5)).buffer(u32s(1)).threads(1, 5).good();
  CHECK(c.values<std::uint32_t>() == U{0, 1, 2, 3, 4});
}
