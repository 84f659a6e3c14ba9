// Kernels with barriers on the CPU against the interpreter: what is cut, hoisted and carried over.
#include "codegen/host_agree.h"

using namespace kiln;
using namespace kiln::host_test;

namespace {

const std::vector<std::array<std::uint32_t, 3>> kShapes = {{96, 1, 1}, {100, 1, 1}, {16, 8, 1}, {7, 1, 1}};
const std::string kIo = "buffer in : u32[*] in\nbuffer out : u32[*] inout\nscalar p : u32\nscalar q : u32\n";
const std::string kHead = R"(
    %tx = thread_id.x
    %ty = thread_id.y
    %dx = block_dim.x
    %dy = block_dim.y
    %row = mul %ty, %dx
    %t = add %row, %tx
    %threads = mul %dx, %dy
    %p = param p
    %q = param q
    %zero = const 0 : u32
    %one = const 1 : u32
    %two = const 2 : u32
)";

Agree make(const std::string& declarations, const std::string& body, std::uint32_t p = 1, std::uint32_t q = 1) {
  Agree a(kIo + declarations, kHead + body);
  a.buffer(noise(512, 1000)).buffer(std::vector<std::uint32_t>(512, 7)).scalar(p).scalar(q);
  return a;
}

}  // namespace

TEST_CASE("a barrier on the CPU: values, locals and local memory live on behind it") {
  make("shared s : u32[128]\nslot a : u32\nslot b : bool\nlocal l : u32[3]", R"(
    %v = load in[%t]
    set a, %v
    %limit = const 500 : u32
    %c = lt %v, %limit
    set b, %c
    store s[%t], %v
    store l[%zero], %v
    store l[%two], %t
    %w = mul %v, %v
    barrier
    %last = sub %threads, %one
    %other = sub %last, %t
    %o = load s[%other]
    %a = get a
    %b = get b
    %l0 = load l[%zero]
    %l2 = load l[%two]
    %bu = cast %b : u32
    %cu = cast %c : u32
    %x1 = add %o, %a
    %x2 = add %x1, %bu
    %x3 = add %x2, %l0
    %x4 = mul %x3, %l2
    %x5 = add %x4, %w
    %x6 = add %x5, %cu
    barrier
    store s[%t], %x6
    barrier
    %y = load s[%other]
    store out[%t], %y
)")
      .at(kShapes);
}

TEST_CASE("a comparison before a barrier on the CPU is asked behind it, where what it compared is no longer kept") {
  const std::string kept = R"(
    %i = global_id.x
    %limit = load in[%p]
    %large = const 961 : u32
    set a, %large
  )";
  const std::string asked = R"(
    barrier
    if %c {
      %a = get a
      store out[%t], %a
    } else {
      store out[%t], %t
    }
  )";
  // Of each comparison: lanes on both sides in one warp, all, none.
  for (const char* comparison : {"%c = lt %i, %limit", "%c = le %i, %limit", "%c = gt %i, %limit", "%c = ne %i, %limit",
                                 "%l = lt %i, %limit\n%c = not %l", "%l = lt %i, %limit\n%m = lt %limit, %q\n%c = or %l, %m"}) {
    for (const std::uint32_t limit : {4U, 0U, 2000U}) {
      Agree a(kIo + "slot a : u32", kHead + kept + comparison + asked);
      a.buffer(std::vector<std::uint32_t>(512, limit)).buffer(std::vector<std::uint32_t>(512, 7)).scalar(1U).scalar(3U);
      a.at(kShapes);
    }
  }
}

TEST_CASE("a tree reduction in a while loop with a barrier on the CPU") {
  make("shared s : u32[128]\nslot n : u32", R"(
    %v = load in[%t]
    store s[%t], %v
    %full = const 128 : u32
    for %i = %t, %full, %threads : u32 {
      %beyond = ge %i, %threads
      if %beyond { store s[%i], %zero
      }
    }
    barrier
    %start = const 64 : u32
    set n, %start
    while {
      %n = get n
      %c = gt %n, %zero
      yield %c
    } do {
      %m = get n
      %mine = lt %t, %m
      if %mine {
        %x = load s[%t]
        %k = get n
        %far = add %t, %k
        %y = load s[%far]
        %z = add %x, %y
        store s[%t], %z
      }
      barrier
      %h = get n
      %half = div %h, %two
      set n, %half
    }
    %first = eq %t, %zero
    if %first {
      %r = load s[%zero]
      store out[%zero], %r
    }
)")
      .at({{96, 1, 1}, {64, 1, 1}, {100, 1, 1}, {16, 8, 1}});
}

TEST_CASE("barriers under uniform conditions inside nested loops on the CPU") {
  for (const auto& [p, q] : std::vector<std::pair<std::uint32_t, std::uint32_t>>{{1, 1}, {1, 2}, {0, 1}, {0, 0}}) {
    Agree a = make("slot before : u32\nslot after : u32\nshared s : u32[128]", R"(
    store s[%t], %zero
    for %o = %zero, %two, %one : u32 {
      for %n = %zero, %two, %one : u32 {
        %b = get before
        %b1 = add %b, %one
        set before, %b1
        %more = gt %q, %p
        if %more { barrier
        }
        %some = gt %p, %zero
        if %some { barrier
        }
        %x = get after
        %x1 = add %x, %one
        set after, %x1
      }
    }
    %some2 = gt %p, %zero
    if %some2 { barrier
    }
    %b2 = get before
    %a2 = get after
    %ten = const 10 : u32
    %b3 = mul %b2, %ten
    %r = add %b3, %a2
    store out[%t], %r
)",
                   p, q);
    a.block = {40, 1, 1};
    a.check(false);
    CHECK(a.values<std::uint32_t>(1)[39] == 44);
  }
}

TEST_CASE("threads that return before a barrier on the CPU no longer count") {
  make("shared s : u32[128]\nslot n : u32", R"(
    %v = load in[%t]
    store s[%t], %v
    %low = const 300 : u32
    %gone = lt %v, %low
    if %gone { return
    }
    %true = eq %zero, %zero
    %count = barrier_count %true
    %big = const 800 : u32
    %c = gt %v, %big
    %any = barrier_any %c
    %all = barrier_all %c
    %u = block_uniform %count
    for %i = %zero, %two, %one : u32 {
      %w = load in[%t]
      %lim = const 600 : u32
      %bye = lt %w, %lim
      if %bye {
        store out[%t], %i
        return
      }
      barrier
      %g = get n
      %g1 = add %g, %w
      set n, %g1
    }
    %left = barrier_count %true
    %anyu = cast %any : u32
    %allu = cast %all : u32
    %h = const 100000 : u32
    %x0 = mul %left, %h
    %x1 = add %x0, %count
    %x2 = add %x1, %anyu
    %x3 = add %x2, %allu
    %x4 = add %x3, %u
    %m = get n
    %x5 = xor %x4, %m
    store out[%t], %x5
)")
      .at(kShapes);
}

TEST_CASE("a block of which everybody returned on the CPU ends, whatever loop it was in") {
  make("shared s : u32[128]\nslot n : u32", R"(
    while {
      %c = block_uniform %one
      %true = eq %c, %one
      yield %true
    } do {
      barrier
      %g = get n
      %g1 = add %g, %one
      set n, %g1
      %end = const 5 : u32
      %mine = rem %t, %end
      %bye = ge %g1, %mine
      if %bye {
        store out[%t], %g1
        return
      }
    }
)")
      .at(kShapes);
}

TEST_CASE("uniform break, continue, return and switch around barriers on the CPU") {
  for (const std::uint32_t p : {0u, 3u, 6u, 9u}) {
    make("shared s : u32[128]\nslot n : u32\nslot k : u32", R"(
    store s[%t], %t
    %ten = const 10 : u32
    %four = const 4 : u32
    %last = sub %threads, %one
    for %i = %zero, %ten, %one : u32 {
      %is = eq %i, %p
      if %is { break
      }
      %odd = rem %i, %four
      %skip = eq %odd, %one
      if %skip {
        %g0 = get n
        %g1 = add %g0, %i
        set n, %g1
        continue
      }
      barrier
      %x = load s[%t]
      barrier
      %y = add %x, %i
      store s[%t], %y
      switch %odd {
        case 2 {
          barrier
          %o = sub %last, %t
          %z = load s[%o]
          %g2 = get n
          %g3 = add %g2, %z
          set n, %g3
        }
        case 3 {
          %done = ge %i, %four
          if %done {
            barrier
            %nine = const 9 : u32
            %pnine = eq %p, %nine
            if %pnine {
              store out[%t], %i
              return
            }
          }
        }
        default {
          %g4 = get n
          %g5 = xor %g4, %i
          set n, %g5
        }
      }
    }
    %r = get n
    store out[%t], %r
)",
         p)
        .at({{70, 1, 1}});
  }
}

TEST_CASE("a loop whose bounds come from memory and hold a barrier on the CPU") {
  make("shared s : u32[128]\nslot n : u32", R"(
    %hi0 = load in[%two]
    %five = const 5 : u32
    %hi1 = rem %hi0, %five
    %hi2 = add %hi1, %two
    %hi = block_uniform %hi2
    %v = load in[%t]
    for %i = %one, %hi, %one : u32 {
      %x = mul %v, %i
      store s[%t], %x
      barrier
      %t1 = add %t, %i
      %o = rem %t1, %threads
      %y = load s[%o]
      %g = get n
      %g1 = add %g, %y
      set n, %g1
      barrier
      %c = block_uniform %i
      %lim = const 3 : u32
      %stop = ge %c, %lim
      if %stop { break
      }
    }
    %r = get n
    store out[%t], %r
)")
      .at(kShapes);
}

TEST_CASE("several blocks on the CPU, in three dimensions, each with shared memory of its own") {
  Agree a("buffer out : u32[*, *, *] inout\nshared s : u32[dynamic]\nscalar n : u32", R"(
    %tx = thread_id.x
    %bx = block_id.x
    %by = block_id.y
    %bz = block_id.z
    %gx = global_id.x
    %dx = block_dim.x
    %nx = grid_dim.x
    %ny = grid_dim.y
    %h = const 1000 : u32
    %yz = mul %bz, %ny
    %yz1 = add %yz, %by
    %lin0 = mul %yz1, %nx
    %lin = add %lin0, %bx
    %code = mul %lin, %h
    %mine = add %code, %tx
    store s[%tx], %mine
    barrier
    %one = const 1 : u32
    %last = sub %dx, %one
    %o = sub %last, %tx
    %v = load s[%o]
    %e = size s
    %ve = add %v, %e
    store out[%bz, %by, %gx], %ve
)");
  a.grid = {3, 4, 2};
  a.dynamic_shared = 36 * 4;
  a.buffer(std::vector<std::uint32_t>(2 * 4 * 108), {2, 4, 108}).scalar(1u);
  a.at({{36, 1, 1}});
}
