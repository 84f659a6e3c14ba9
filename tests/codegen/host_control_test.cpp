// Control flow of warps on the CPU against the interpreter, with whole and partial warps.
#include "codegen/host_agree.h"

using namespace kiln;
using namespace kiln::host_test;

namespace {

const std::vector<std::array<std::uint32_t, 3>> kShapes = {{64, 1, 1}, {70, 1, 1}, {5, 1, 1},  {16, 4, 1},
                                                           {8, 4, 3},  {24, 3, 1}, {1, 40, 1}, {2, 2, 20}};

// The linear thread id of any shape as %t.
const std::string kThread = R"(
    %tx = thread_id.x
    %ty = thread_id.y
    %tz = thread_id.z
    %dx = block_dim.x
    %dy = block_dim.y
    %zy = mul %tz, %dy
    %yz = add %zy, %ty
    %row = mul %yz, %dx
    %t = add %row, %tx
)";

const std::string kIo = "buffer in : u32[*] in\nbuffer out : u32[*] out";

Agree make(const std::string& slots, const std::string& body) {
  Agree a(kIo + "\n" + slots, kThread + body);
  a.buffer(noise(2048, 40)).buffer(std::vector<std::uint32_t>(1024, 7));
  return a;
}

}  // namespace

TEST_CASE("if and else on the CPU: each lane takes its branch, nested and empty ones too") {
  make("slot s : u32", R"(
    %v = load in[%t]
    %two = const 2 : u32
    %r = rem %v, %two
    %zero = const 0 : u32
    %even = eq %r, %zero
    if %even {
      set s, %v
      %ten = const 10 : u32
      %small = lt %v, %ten
      if %small {
        %x = add %v, %ten
        set s, %x
      } else {
        %big = const 30 : u32
        %huge = gt %v, %big
        if %huge { set s, %zero
        }
      }
    } else {
      %g = get s
      %y = sub %g, %v
      set s, %y
    }
    %o = get s
    store out[%t], %o
)")
      .at(kShapes);
}

TEST_CASE("an early return on the CPU leaves the other lanes alone") {
  make("slot s : u32", R"(
    %v = load in[%t]
    %c = const 13 : u32
    %low = lt %v, %c
    if %low { return
    }
    store out[%t], %v
    %c2 = const 30 : u32
    %high = gt %v, %c2
    if %high {
      store out[%t], %c
      return
    }
    %w = add %v, %c
    store out[%t], %w
)")
      .at(kShapes);
}

TEST_CASE("loops on the CPU run until their last lane is done") {
  make("slot s : u32", R"(
    %v = load in[%t]
    %zero = const 0 : u32
    %one = const 1 : u32
    %three = const 3 : u32
    for %i = %zero, %v, %one : u32 {
      %g = get s
      %m = mul %g, %three
      %a = add %m, %i
      set s, %a
    }
    for %j = %tx, %v, %three : u32 {
      %g2 = get s
      %a2 = add %g2, %j
      set s, %a2
    }
    for %k = %one, %three, %v : u32 {
      %g3 = get s
      %a3 = xor %g3, %k
      set s, %a3
    }
    %o = get s
    store out[%t], %o
)")
      .at(kShapes);
}

TEST_CASE("break, continue and return of loops on the CPU take only the lanes that reach them") {
  make("slot s : u32\nslot n : u32", R"(
    %v = load in[%t]
    %zero = const 0 : u32
    %one = const 1 : u32
    %four = const 4 : u32
    %limit = const 25 : u32
    %end = const 37 : u32
    for %i = %zero, %limit, %one : u32 {
      %even = and %i, %one
      %skip = eq %even, %zero
      if %skip { continue
      }
      %past = gt %i, %v
      if %past { break
      }
      %g = get s
      %a = add %g, %i
      set s, %a
      %stop = eq %a, %end
      if %stop {
        store out[%t], %limit
        return
      }
    }
    while {
      %n = get n
      %c = lt %n, %v
      yield %c
    } do {
      %m = get n
      %m1 = add %m, %one
      set n, %m1
      %r = rem %m1, %four
      %jump = eq %r, %one
      if %jump { continue
      }
      %x = get s
      %x2 = add %x, %m1
      set s, %x2
      %far = gt %x2, %end
      if %far {
        %mod = and %x2, %one
        %odd = eq %mod, %one
        if %odd { break
        }
        for %q = %zero, %four, %one : u32 {
          %hit = eq %q, %r
          if %hit { break
          }
          %y = get s
          %y1 = add %y, %q
          set s, %y1
        }
      }
    }
    %o = get s
    store out[%t], %o
)")
      .at(kShapes);
}

TEST_CASE("uniform loops with uniform and divergent ways out on the CPU") {
  make("slot s : u32\nslot k : u32", R"(
    %v = load in[%t]
    %zero = const 0 : u32
    %one = const 1 : u32
    %five = const 5 : u32
    %ten = const 10 : u32
    %hundred = const 100 : u32
    while {
      %true = const true : bool
      yield %true
    } do {
      %k = get k
      %k1 = add %k, %one
      set k, %k1
      %full = ge %k1, %ten
      if %full { break
      }
      %three = eq %k1, %five
      if %three { continue
      }
      %g = get s
      %gv = add %g, %v
      set s, %gv
      %bye = gt %gv, %hundred
      if %bye {
        store out[%t], %gv
        return
      }
    }
    while {
      %true2 = const true : bool
      yield %true2
    } do {
      %g2 = get s
      %g3 = add %g2, %v
      %g4 = add %g3, %one
      set s, %g4
      %bye2 = gt %g4, %hundred
      if %bye2 {
        store out[%t], %g4
        return
      }
    }
)")
      .at(kShapes);
}

TEST_CASE("switch on the CPU, uniform and divergent, with leaves inside") {
  make("slot s : u32\nslot k : u32", R"(
    %v = load in[%t]
    %zero = const 0 : u32
    %one = const 1 : u32
    %four = const 4 : u32
    %six = const 6 : u32
    for %i = %zero, %six, %one : u32 {
      switch %i {
        case 0 { set s, %v
        }
        case 3 {
          %g = get s
          %a = add %g, %v
          set s, %a
        }
        default {
          %r = rem %v, %four
          switch %r {
            case 1 {
              %b = get s
              %b1 = add %b, %i
              set s, %b1
              continue
            }
            case 2 {
              %e = eq %i, %four
              if %e { break
              }
            }
            case 3 {
            }
            default {
              %d = get s
              %d1 = xor %d, %one
              set s, %d1
            }
          }
        }
      }
      %x = get s
      %y = add %x, %one
      set s, %y
    }
    %o = get s
    store out[%t], %o
)")
      .at(kShapes);
}

TEST_CASE("a local that some lanes miss keeps its old value in them") {
  // `u` is set to uniform values only, yet under conditions and in loops that lanes take differently.
  make("slot u : u32\nslot w : u32", R"(
    %v = load in[%t]
    %zero = const 0 : u32
    %one = const 1 : u32
    %six = const 6 : u32
    %twenty = const 20 : u32
    %low = lt %v, %twenty
    if %low { set u, %six
    }
    for %i = %zero, %v, %one : u32 {
      set w, %i
      %g = get w
      %stop = gt %g, %six
      if %stop { break
      }
      %u = get u
      %u1 = add %u, %one
      set u, %u1
    }
    %a = get u
    %b = get w
    %ab = mul %a, %twenty
    %o = add %ab, %b
    store out[%t], %o
)")
      .at(kShapes);
}

TEST_CASE("a for loop on the CPU never wraps, and a step of 0 runs it once") {
  Agree a("buffer out : u32[*] out\nscalar hi : u32\nscalar step : u32\nscalar shi : i32\nscalar none : u32\nslot s : u32", kThread + R"(
    %hi = param hi
    %step = param step
    %shi = param shi
    %k = const 0xfffffff0 : u32
    %one = const 1 : u32
    %seven = const 7 : u32
    %t7 = and %t, %seven
    %lo = add %k, %t7
    for %i = %lo, %hi, %step : u32 {
      %g = get s
      %g1 = add %g, %one
      set s, %g1
    }
    %none = param none
    for %z = %t, %hi, %none : u32 {
      %g2 = get s
      %h = const 100 : u32
      %g3 = add %g2, %h
      set s, %g3
    }
    %slo = const 2147483000 : i32
    %sstep = cast %step : i32
    for %q = %slo, %shi, %sstep : i32 {
      %g4 = get s
      %h2 = const 1000 : u32
      %g5 = add %g4, %h2
      set s, %g5
    }
    %ti = cast %t : i32
    %minus = const -2000000000 : i32
    %from = sub %minus, %ti
    %two9 = const 2000000000 : i32
    for %p = %from, %shi, %two9 : i32 {
      %g6 = get s
      %h3 = const 10000 : u32
      %g7 = add %g6, %h3
      set s, %g7
    }
    %o = get s
    store out[%t], %o
)");
  a.buffer(std::vector<std::uint32_t>(64, 9)).scalar(0xffffffffu).scalar(7u).scalar(std::int32_t{2147483647}).scalar(0u);
  a.at({{40, 1, 1}, {64, 1, 1}});
}

TEST_CASE("what only one lane or no lane does is jumped over, also deep inside") {
  make("slot s : u32", R"(
    %v = load in[%t]
    %zero = const 0 : u32
    %one = const 1 : u32
    %five = const 5 : u32
    %thirteen = const 13 : u32
    %huge = const 4000000000 : u32
    %is = eq %t, %thirteen
    if %is {
      for %i = %zero, %five, %one : u32 {
        %g = get s
        %a = add %g, %v
        set s, %a
      }
      %never = gt %v, %huge
      if %never {
        %bad = load in[%huge]
        set s, %bad
      } else {
        %o = get s
        store out[%t], %o
      }
    }
)")
      .at(kShapes);
}
