// What the bounds prover proves, and what it must not. Each row is a kernel whose accesses say what is expected of them: `proven` or
// `checked`. A wrong `proven` is an out-of-range access without a check, so every rule has rows of both kinds.
#include "bounds_rows.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

TEST_CASE("guards") {
  const Row rows[] = {
      {"below the size", "",
       "%i = global_id.x\n%n = size y\n%c = lt %i, %n\nif %c {\nstore y[%i], %i proven\n} else {\nstore y[%i], %i checked\n}\nstore y[%i], "
       "%i checked"},
      {"the size above", "", "%i = global_id.x\n%n = extent y.0\n%c = gt %n, %i\nif %c {\nstore y[%i], %i proven\n}"},
      {"not at or above", "", "%i = global_id.x\n%n = size y\n%c = ge %i, %n\nif %c {\n} else {\nstore y[%i], %i proven\n}"},
      {"not of a comparison", "", "%i = global_id.x\n%n = size y\n%c = ge %i, %n\n%d = not %c\nif %d {\nstore y[%i], %i proven\n}"},
      {"equal to the size is one too many", "", "%i = global_id.x\n%n = size y\n%c = le %i, %n\nif %c {\nstore y[%i], %i checked\n}"},
      {"at most the size and not equal", "",
       "%i = global_id.x\n%n = size y\n%c = le %i, %n\n%d = ne %i, %n\n%e = and %c, %d\nif %e {\nstore y[%i], %i proven\n}"},
      {"the size of another buffer", "",
       "%i = global_id.x\n%n = size x\n%c = lt %i, %n\nif %c {\nstore y[%i], %i checked\n%v = load x[%i] proven\n}"},
      {"another index", "", "%i = global_id.x\n%j = global_id.y\n%n = size y\n%c = lt %i, %n\nif %c {\nstore y[%j], %i checked\n}"},
      {"64 bit", "", "%i = global_id.x : u64\n%n = size y : u64\n%c = lt %i, %n\n%k = const 1 : u32\nif %c {\nstore y[%i], %k proven\n}"},
      {"a 32-bit index against the 64-bit size", "",
       "%i = global_id.x\n%w = cast %i : u64\n%n = size y : u64\n%c = lt %w, %n\nif %c {\nstore y[%i], %i proven\nstore y[%w], %i "
       "proven\n}"},
      {"a cut index against the size", "",
       "%i = global_id.x : u64\n%w = cast %i : u32\n%n = size y\n%c = lt %w, %n\nif %c {\nstore y[%w], %w proven\nstore y[%i], %w "
       "checked\n}"},
      {"an index made anew in each place", "",
       "%i = global_id.x\n%n = size y\n%c = lt %i, %n\nif %c {\n%j = global_id.x\nstore y[%j], %j proven\n}"},
      {"only a lower bound", "", "%i = global_id.x\n%n = size y\n%c = gt %i, %n\nif %c {\nstore y[%i], %i checked\n}"},
      {"a guard on a loaded index", "",
       "%i = global_id.x\n%n = size x\n%c = lt %i, %n\nif %c {\n%j = load x[%i] proven\n%m = size y\n%d = lt %j, %m\nif %d {\nstore y[%j], "
       "%j proven\n}\nstore y[%j], %j checked\n}"},
  };
  check_rows(rows, "buffer x : u32[*] in\nbuffer y : u32[*] inout\nscalar n : u32\n");
}

TEST_CASE("requires are facts, and they chain") {
  const Row rows[] = {
      {"at least", "",
       "%a = size x\n%b = size y\n%c = ge %a, %b\nrequire %c, \"\"\n%i = global_id.x\n%d = lt %i, %b\nif %d {\n%v = load x[%i] "
       "proven\nstore y[%i], %v proven\n}"},
      {"the wrong way round", "",
       "%a = size x\n%b = size y\n%c = le %a, %b\nrequire %c, \"\"\n%i = global_id.x\n%d = lt %i, %b\nif %d {\n%v = load x[%i] "
       "checked\nstore y[%i], %v proven\n}"},
      {"equal", "",
       "%a = size x\n%b = size y\n%c = eq %a, %b\nrequire %c, \"\"\n%i = global_id.x\n%d = lt %i, %a\nif %d {\n%v = load x[%i] "
       "proven\nstore y[%i], %v proven\n}"},
      {"unequal says nothing", "",
       "%a = size x\n%b = size y\n%c = ne %a, %b\nrequire %c, \"\"\n%i = global_id.x\n%d = lt %i, %a\nif %d {\nstore y[%i], %i checked\n}"},
      {"through a scalar and a third buffer", "", R"(
        %n = param n
        %a = size x
        %b = size y
        %c = size z
        %p = le %n, %a
        require %p, ""
        %q = lt %a, %b
        require %q, ""
        %r = gt %c, %b
        require %r, ""
        %i = global_id.x
        %g = lt %i, %n
        if %g {
          %v = load x[%i] proven
          store y[%i], %v proven
          %one = const 1 : u32
          %two = const 2 : u32
          %three = const 3 : u32
          %j = add %i, %one
          %k = add %i, %two
          %l = add %i, %three
          store y[%j], %v proven
          store z[%k], %v proven
          store y[%k], %v checked
          store z[%l], %v checked
        })"},
      {"several in one", "",
       "%a = size x\n%b = size y\n%n = param n\n%p = ge %a, %n\n%q = ge %b, %n\n%c = and %p, %q\nrequire %c, \"\"\n%i = global_id.x\n%d = "
       "lt %i, %n\nif %d {\n%v = load x[%i] proven\nstore y[%i], %v proven\n}"},
      {"one of two is not both", "",
       "%a = size x\n%b = size y\n%n = param n\n%p = ge %a, %n\n%q = ge %b, %n\n%c = or %p, %q\nrequire %c, \"\"\n%i = global_id.x\n%d = "
       "lt %i, %n\nif %d {\n%v = load x[%i] checked\nstore y[%i], %v checked\n}"},
      {"a constant size", "",
       "%a = size x\n%k = const 64 : u32\n%c = ge %a, %k\nrequire %c, \"\"\n%l = const 63 : u32\n%v = load x[%l] proven\n%w = load x[%k] "
       "checked"},
      {"a size found equal to a constant", "",
       "%a = size x\n%k = const 64 : u32\n%c = eq %a, %k\nrequire %c, \"\"\n%l = const 63 : u32\n%v = load x[%l] proven\n%w = load x[%k] "
       "checked"},
      {"one element a block", "",
       "%a = size x\n%g = grid_dim.x\n%c = ge %a, %g\nrequire %c, \"\"\n%b = block_id.x\n%v = load x[%b] proven\n%t = block_id.y\n%w = "
       "load x[%t] checked"},
      {"one element a thread of a block", "",
       "%a = size x\n%g = block_dim.x\n%c = ge %a, %g\nrequire %c, \"\"\n%t = thread_id.x\n%v = load x[%t] proven\n%b = thread_id.y\n%w = "
       "load x[%b] checked"},
  };
  check_rows(rows, "buffer x : u32[*] in\nbuffer y : u32[*] inout\nbuffer z : u32[*] inout\nscalar n : u32\n");
}

TEST_CASE("conditions of several parts") {
  const Row rows[] = {
      {"and, two dimensions", "", R"(
        %r = global_id.y
        %c = global_id.x
        %h = extent a.0
        %w = extent a.1
        %p = lt %r, %h
        %q = lt %c, %w
        %g = and %p, %q
        if %g {
          %v = load a[%r, %c] proven
          %u = load a[%c, %r] checked
        })"},
      {"nested ifs", "", R"(
        %r = global_id.y
        %c = global_id.x
        %h = extent a.0
        %w = extent a.1
        %p = lt %r, %h
        if %p {
          %q = lt %c, %w
          if %q {
            %v = load a[%r, %c] proven
          }
          %u = load a[%r, %c] checked
        })"},
      {"or proves neither", "",
       "%r = global_id.y\n%c = global_id.x\n%h = extent a.0\n%w = extent a.1\n%p = lt %r, %h\n%q = lt %c, %w\n%g = or %p, %q\nif %g {\n%v "
       "= load a[%r, %c] checked\n}"},
      {"or of the opposites, left early", "",
       "%r = global_id.y\n%c = global_id.x\n%h = extent a.0\n%w = extent a.1\n%p = ge %r, %h\n%q = ge %c, %w\n%g = or %p, %q\nif %g "
       "{\nreturn\n}\n%v = load a[%r, %c] proven"},
      {"short-circuit and through a local", "slot s : bool\n", R"(
        %r = global_id.y
        %c = global_id.x
        %h = extent a.0
        %w = extent a.1
        %p = lt %r, %h
        set s, %p
        if %p {
          %q = lt %c, %w
          set s, %q
        }
        %g = get s
        if %g {
          %v = load a[%r, %c] proven
        } else {
          %v2 = load a[%r, %c] checked
        })"},
      {"short-circuit and with a load on the right", "slot s : bool\n", R"(
        %i = global_id.x
        %n = size x
        %p = lt %i, %n
        set s, %p
        if %p {
          %v = load x[%i] proven
          %q = gt %v, %i
          set s, %q
        }
        %g = get s
        if %g {
          %w = load x[%i] proven
        })"},
      {"short-circuit or through a local", "slot s : bool\n", R"(
        %r = global_id.y
        %c = global_id.x
        %h = extent a.0
        %w = extent a.1
        %p = ge %r, %h
        %np = not %p
        set s, %p
        if %np {
          %q = ge %c, %w
          set s, %q
        }
        %g = get s
        if %g {
          return
        }
        %v = load a[%r, %c] proven)"},
      {"three conditions, each recorded under the one before", "slot s : bool\nslot t : bool\n", R"(
        %r = global_id.y
        %c = global_id.x
        %n = param n
        %h = extent a.0
        %w = extent a.1
        %p = lt %r, %h
        set s, %p
        if %p {
          %q = lt %c, %w
          set s, %q
        }
        %g = get s
        set t, %g
        if %g {
          %z = lt %r, %n
          set t, %z
        }
        %f = get t
        if %f {
          %v = load a[%r, %c] proven
        })"},
      {"a local condition that was set again since", "slot s : bool\n", R"(
        %i = global_id.x
        %n = size x
        %p = lt %i, %n
        set s, %p
        %t = const true : bool
        set s, %t
        %g = get s
        if %g {
          %v = load x[%i] checked
        })"},
      {"a local condition set only under another one", "slot s : bool\n", R"(
        %i = global_id.x
        %n = size x
        %m = param n
        %p = lt %i, %n
        %u = lt %i, %m
        set s, %u
        if %u {
          set s, %p
        }
        %g = get s
        if %g {
          %v = load x[%i] proven
        })"},
      {"a local condition with another value on the other way", "slot s : bool\n", R"(
        %i = global_id.x
        %n = size x
        %m = param n
        %p = lt %i, %n
        %u = lt %i, %m
        %o = gt %i, %m
        set s, %o
        if %u {
          set s, %p
        }
        %g = get s
        if %g {
          %v = load x[%i] checked
        })"},
      {"a vote that all agree", "",
       "%i = global_id.x\n%n = size x\n%p = lt %i, %n\n%a = vote_all %p\nif %a {\n%v = load x[%i] proven\n}\n%b = vote_any %p\nif %b {\n%w "
       "= load x[%i] checked\n}"},
      {"a switch on the index", "",
       "%i = global_id.x\n%n = size x\n%k = const 4 : u32\n%p = ge %n, %k\nif %p {\nswitch %i {\ncase 3 {\n%v = load x[%i] proven\n}\ncase "
       "4 {\n%w = load x[%i] checked\n}\ndefault {\n%u = load x[%i] checked\n}\n}\n}"},
  };
  check_rows(rows, "buffer a : u32[*, *] in\nbuffer x : u32[*] in\nscalar n : u32\n");
}

TEST_CASE("leaving early is a guard for what follows in the region, and no further") {
  const Row rows[] = {
      {"return", "", "%i = global_id.x\n%n = size y\n%c = ge %i, %n\nif %c {\nreturn\n}\nstore y[%i], %i proven"},
      {"else return", "", "%i = global_id.x\n%n = size y\n%c = lt %i, %n\nif %c {\n} else {\nreturn\n}\nstore y[%i], %i proven"},
      {"return on both of two nested ways", "",
       "%i = global_id.x\n%n = size y\n%m = param n\n%c = ge %i, %n\n%d = lt %i, %m\nif %c {\nif %d {\nreturn\n} else "
       "{\nreturn\n}\n}\nstore y[%i], %i proven"},
      {"return on one of two nested ways", "",
       "%i = global_id.x\n%n = size y\n%m = param n\n%c = ge %i, %n\n%d = lt %i, %m\nif %c {\nif %d {\nreturn\n}\n}\nstore y[%i], %i "
       "checked"},
      {"break and continue", "", R"(
        %i = global_id.x
        %n = size y
        %z = const 0 : u32
        %o = const 1 : u32
        %m = param n
        for %j = %z, %m, %o : u32 {
          %c = ge %j, %n
          if %c {
            continue
          }
          store y[%j], %j proven
          %d = ge %i, %n
          if %d {
            break
          }
          store y[%i], %j proven
        }
        store y[%i], %i checked)"},
      {"a return inside an if holds to the end of that if only", "",
       "%i = global_id.x\n%n = size y\n%m = param n\n%d = lt %i, %m\nif %d {\n%c = ge %i, %n\nif %c {\nreturn\n}\nstore y[%i], %i "
       "proven\n}\nstore y[%i], %i checked"},
  };
  check_rows(rows, "buffer y : u32[*] inout\nscalar n : u32\n");
}

TEST_CASE("loops") {
  const Row rows[] = {
      {"to the size", "", "%z = const 0 : u32\n%o = const 1 : u32\n%n = size y\nfor %i = %z, %n, %o : u32 {\nstore y[%i], %i proven\n}"},
      {"grid stride", "",
       "%i = global_id.x\n%b = block_dim.x\n%g = grid_dim.x\n%s = mul %b, %g\n%n = size y\nfor %j = %i, %n, %s : u32 {\nstore y[%j], %j "
       "proven\n}"},
      {"to a value at most the size", "",
       "%z = const 0 : u32\n%o = const 1 : u32\n%m = param n\n%n = size y\n%c = le %m, %n\nif %c {\nfor %i = %z, %m, %o : u32 {\nstore "
       "y[%i], %i proven\n}\n}\nfor %i2 = %z, %m, %o : u32 {\nstore y[%i2], %i2 checked\n}"},
      {"to the smaller of two", "",
       "%z = const 0 : u32\n%o = const 1 : u32\n%m = param n\n%n = size y\n%l = min %m, %n\nfor %i = %z, %l, %o : u32 {\nstore y[%i], %i "
       "proven\n}"},
      {"to the larger of two", "",
       "%z = const 0 : u32\n%o = const 1 : u32\n%m = param n\n%n = size y\n%l = max %m, %n\nfor %i = %z, %l, %o : u32 {\nstore y[%i], %i "
       "checked\n}"},
      {"one past", "",
       "%z = const 0 : u32\n%o = const 1 : u32\n%n = size y\n%l = add %n, %o\nfor %i = %z, %l, %o : u32 {\nstore y[%i], %i checked\n}"},
      {"from the thread through a shared array", "shared s : u32[64]\n",
       "%t = thread_id.x\n%n = const 64 : u32\n%b = block_dim.x\nfor %i = %t, %n, %b : u32 {\nstore s[%i], %i proven\n}\n%m = const 65 : "
       "u32\nfor %j = %t, %m, %b : u32 {\nstore s[%j], %j checked\n}"},
      {"signed, from zero", "",
       "%z = const 0 : i32\n%o = const 1 : i32\n%n = size y\n%m = cast %n : i32\n%k = const 1 : u32\nfor %i = %z, %m, %o : i32 {\nstore "
       "y[%i], %k proven\n}"},
      {"signed, from below zero", "",
       "%z = const -1 : i32\n%o = const 1 : i32\n%n = size y\n%m = cast %n : i32\n%k = const 1 : u32\nfor %i = %z, %m, %o : i32 {\nstore "
       "y[%i], %k checked\n}"},
      {"signed, by any step: a loop never counts past its end", "scalar q : i32\n",
       "%z = const 0 : i32\n%o = param q\n%n = size y\n%m = cast %n : i32\n%k = const 1 : u32\nfor %i = %z, %m, %o : i32 {\nstore y[%i], "
       "%k proven\n}"},
      {"by fours, all four inside", "shared s : u32[16]\n",
       "%z = const 0 : u32\n%n = const 16 : u32\n%f = const 4 : u32\n%k = const 3 : u32\nfor %i = %z, %n, %f : u32 {\n%j = add %i, "
       "%k\nstore s[%j], %i proven\n%l = add %i, %f\nstore s[%l], %i checked\n}"},
      {"by fours, where the last ones are past the end", "shared s : u32[15]\n",
       "%z = const 0 : u32\n%n = const 15 : u32\n%f = const 4 : u32\n%k = const 3 : u32\n%two = const 2 : u32\nfor %i = %z, %n, %f : u32 "
       "{\n%j = add %i, %k\nstore s[%j], %i checked\n%l = add %i, %two\nstore s[%l], %i proven\n}"},
      {"by fours, from somewhere", "shared s : u32[16]\n",
       "%z = thread_id.x\n%n = const 16 : u32\n%f = const 4 : u32\n%k = const 3 : u32\nfor %i = %z, %n, %f : u32 {\n%j = add %i, %k\nstore "
       "s[%j], %i checked\n}"},
      {"one below the induction value, from one", "",
       "%o = const 1 : u32\n%n = size y\nfor %i = %o, %n, %o : u32 {\n%j = sub %i, %o\nstore y[%j], %i proven\n}"},
      {"one below the induction value, from zero", "",
       "%z = const 0 : u32\n%o = const 1 : u32\n%n = size y\nfor %i = %z, %n, %o : u32 {\n%j = sub %i, %o\nstore y[%j], %i checked\n}"},
      {"a local counted by a while", "slot s : u32\n", R"(
        %t = thread_id.x
        %b = block_dim.x
        %n = size y
        set s, %t
        while {
          %i = get s
          %c = lt %i, %n
          yield %c
        } do {
          %j = get s
          store y[%j], %j proven
          %k = add %j, %b
          set s, %k
          %l = get s
          store y[%l], %l checked
        }
        %e = get s
        store y[%e], %e checked)"},
      {"a guard on a local before a loop that changes it", "slot s : u32\n", R"(
        %t = thread_id.x
        %o = const 1 : u32
        %z = const 0 : u32
        %n = size y
        set s, %t
        %c = lt %t, %n
        if %c {
          %a = get s
          store y[%a], %a proven
          for %i = %z, %n, %o : u32 {
            %g = get s
            store y[%g], %g checked
            %h = add %g, %o
            set s, %h
          }
          %k = get s
          store y[%k], %k checked
        })"},
      {"a guard on a local that a loop leaves alone", "slot s : u32\n", R"(
        %t = thread_id.x
        %o = const 1 : u32
        %z = const 0 : u32
        %n = size y
        set s, %t
        %c = lt %t, %n
        if %c {
          for %i = %z, %n, %o : u32 {
            %g = get s
            store y[%g], %g proven
          }
        })"},
  };
  check_rows(rows, "buffer y : u32[*] inout\nscalar n : u32\n");
}

TEST_CASE("locals that a loop changes within bounds") {
  const Row rows[] = {
      {"a tree reduction that halves", "block_size 256, 1, 1\nshared a : u32[256]\nshared b : u32[255]\nslot s : u32\n", R"(
        %t = thread_id.x
        %z = const 0 : u32
        %one = const 1 : u32
        %first = const 128 : u32
        set s, %first
        while {
          %s = get s
          %c = gt %s, %z
          yield %c
        } do {
          %s2 = get s
          %g = lt %t, %s2
          if %g {
            %i = add %t, %s2
            %v = load a[%i] proven
            %w = load a[%t] proven
            %x = load b[%i] checked
            store a[%t], %v proven
          }
          barrier
          %half = shr %s2, %one
          set s, %half
        })"},
      {"a scan that doubles, looking back", "block_size 256, 1, 1\nshared a : u32[256]\nslot s : u32\n", R"(
        %t = thread_id.x
        %one = const 1 : u32
        %end = const 256 : u32
        set s, %one
        while {
          %s = get s
          %c = lt %s, %end
          yield %c
        } do {
          %s2 = get s
          %back = sub %t, %s2
          %g = ge %t, %s2
          if %g {
            %v = load a[%back] proven
          }
          %w = load a[%back] checked
          %double = add %s2, %s2
          set s, %double
        })"},
      {"a counter without an end in sight", "local a : u32[64]\nslot s : u32\n", R"(
        %one = const 1 : u32
        %n = thread_id.x
        %z = const 0 : u32
        for %k = %z, %n, %one : u32 {
          %s = get s
          store a[%s], %k checked
          %next = add %s, %one
          set s, %next
        })"},
      {"a counter that wraps around by remainder", "local a : u32[64]\nlocal b : u32[63]\nslot s : u32\n", R"(
        %one = const 1 : u32
        %n = thread_id.x
        %m = const 64 : u32
        %z = const 0 : u32
        for %k = %z, %n, %one : u32 {
          %s = get s
          store a[%s], %k proven
          store b[%s], %k checked
          %next = add %s, %one
          %r = rem %next, %m
          set s, %r
        })"},
      {"two locals that feed each other", "local a : u32[65]\nslot s : u32\nslot t : u32\n", R"(
        %one = const 1 : u32
        %n = thread_id.x
        %m = const 64 : u32
        %z = const 0 : u32
        set s, %one
        for %k = %z, %n, %one : u32 {
          %s = get s
          %t = get t
          store a[%s], %k checked
          store a[%t], %k proven
          %u = add %s, %t
          set s, %u
          %l = min %s, %m
          set t, %l
        })"},
      {"a signed local that a loop takes below zero", "local a : u32[64]\nslot s : i32\n", R"(
        %o = const 1 : u32
        %one = const 1 : i32
        %n = thread_id.x
        %m = const 63 : i32
        %z = const 0 : u32
        set s, %m
        for %k = %z, %n, %o : u32 {
          %s = get s
          store a[%s], %k checked
          %next = sub %s, %one
          set s, %next
        })"},
      {"powers of two by shifting one", "local a : u32[129]\n", R"(
        %o = const 1 : u32
        %z = const 0 : u32
        %m = const 8 : u32
        for %k = %z, %m, %o : u32 {
          %p = shl %o, %k
          store a[%p], %k proven
          %q = shl %p, %o
          store a[%q], %k checked
          %r = shr %m, %k
          store a[%r], %k proven
        })"},
  };
  check_rows(rows);
}

TEST_CASE("static arrays and the shape of the block") {
  const Row rows[] = {
      {"declared threads", "block_size 64, 1, 1\nshared s : u32[64]\nshared t : u32[63]\n",
       "%i = thread_id.x\nstore s[%i], %i proven\nstore t[%i], %i checked"},
      {"at most so many threads", "max_threads 64\nshared s : u32[64]\nshared t : u32[63]\n",
       "%i = thread_id.y\nstore s[%i], %i proven\nstore t[%i], %i checked"},
      {"not declared", "shared s : u32[64]\n", "%i = thread_id.x\nstore s[%i], %i checked"},
      {"two dimensions, padded", "block_size 16, 16, 1\nshared s : f32[16, 17]\n",
       "%x = thread_id.x\n%y = thread_id.y\n%v = const 0.0 : f32\nstore s[%y, %x], %v proven\n%o = const 1 : u32\n%p = add %x, %o\nstore "
       "s[%y, %p], %v proven\n%q = add %y, %o\nstore s[%q, %x], %v checked"},
      {"a linear index of a two-dimensional block", "block_size 16, 8, 1\nshared s : u32[128]\n",
       "%x = thread_id.x\n%y = thread_id.y\n%w = const 16 : u32\n%m = mul %y, %w\n%i = add %m, %x\nstore s[%i], %i proven\n%f = const 4 : "
       "u32\n%n = shl %y, %f\n%j = add %n, %x\nstore s[%j], %j proven\n%g = const 5 : u32\n%o = shl %y, %g\n%p = add %o, %x\nstore s[%p], "
       "%p checked"},
      {"shifts", "block_size 16, 8, 1\nshared s : u32[128]\n",
       "%x = thread_id.x\n%y = thread_id.y\n%f = const 4 : u32\n%n = shl %y, %f\n%j = or %n, %x\nstore s[%j], %j proven\n%t = const 3 : "
       "u32\n%k = shr %j, %t\nstore s[%k], %k proven"},
      {"lanes and warps", "block_size 256, 1, 1\nshared s : u32[32]\nshared w : u32[8]\n",
       "%l = lane_id\n%v = warp_id\nstore s[%l], %l proven\nstore w[%v], %v proven\nstore w[%l], %l checked"},
      {"remainder and quotient of a thread id", "block_size 256, 1, 1\nshared s : u32[32]\nshared w : u32[8]\n",
       "%t = thread_id.x\n%k = const 32 : u32\n%l = rem %t, %k\n%v = div %t, %k\nstore s[%l], %l proven\nstore w[%v], %v proven\nstore "
       "w[%l], %l checked"},
      {"remainder by what may be zero", "scalar n : u32\nlocal s : u32[32]\n",
       "%i = global_id.x\n%n = param n\n%k = const 32 : u32\n%c = le %n, %k\nif %c {\n%r = rem %i, %n\nstore s[%r], %r checked\n%z = const "
       "0 : u32\n%d = gt %n, %z\nif %d {\nstore s[%r], %r proven\n}\n}"},
      {"and with a mask", "local s : u32[32]\n",
       "%i = global_id.x\n%k = const 31 : u32\n%l = const 32 : u32\n%r = and %i, %k\n%q = and %i, %l\nstore s[%r], %r proven\nstore s[%q], "
       "%q checked"},
      {"xor of lanes", "block_size 32, 1, 1\nshared s : u32[32]\n",
       "%t = thread_id.x\n%k = const 5 : u32\n%l = const 33 : u32\n%r = xor %t, %k\n%q = xor %t, %l\nstore s[%r], %r proven\nstore s[%q], "
       "%q checked"},
      {"min", "local s : u32[32]\n",
       "%i = global_id.x\n%k = const 31 : u32\n%r = min %i, %k\nstore s[%r], %r proven\n%q = max %i, %k\nstore s[%q], %q checked"},
      {"clamped and signed", "local s : u32[32]\nscalar n : i32\n",
       "%i = param n\n%k = const 31 : i32\n%z = const 0 : i32\n%l = const -1 : i32\n%v = const 1 : u32\n%a = min %i, %k\n%b = max %a, "
       "%z\nstore s[%b], %v proven\n%c = max %a, %l\nstore s[%c], %v checked\nstore s[%a], %v checked"},
      {"select", "local s : u32[32]\n",
       "%i = global_id.x\n%k = const 32 : u32\n%c = lt %i, %k\n%z = const 0 : u32\n%r = select %c, %i, %z\nstore s[%r], %r proven\n%q = "
       "select %c, %z, %i\nstore s[%q], %q checked"},
      {"counts of bits", "local s : u32[33]\n",
       "%i = global_id.x\n%r = popcount %i\n%c = clz %i\nstore s[%r], %r proven\nstore s[%c], %c proven"},
      {"a bool as index", "local s : u32[2]\n",
       "%i = global_id.x\n%k = const 32 : u32\n%c = lt %i, %k\n%r = cast %c : u32\nstore s[%r], %r proven"},
      {"a float as index", "local s : u32[2]\n", "%f = const 0.5 : f32\n%r = cast %f : u32\nstore s[%r], %r checked"},
      {"a product that wraps", "local s : u32[32]\n",
       "%i = lane_id\n%k = const 0x80000001 : u32\n%r = mul %i, %k\nstore s[%r], %i checked"},
      {"dynamic shared memory", "shared d : u32[dynamic]\n",
       "%t = thread_id.x\n%n = size d\n%c = lt %t, %n\nif %c {\nstore d[%t], %t proven\n}\nstore d[%t], %t checked"},
  };
  check_rows(rows);
}

TEST_CASE("neighbours") {
  const std::string in_image =
      "%r = global_id.y\n%c = global_id.x\n%h = extent a.0\n%w = extent a.1\n%o = const 1 : u32\n%z = const 0 : u32\n";
  const std::string rows[][3] = {
      {"a stencil inside its border", "buffer b : u32[*, *] out\n",
       "%bh = extent b.0\n%bw = extent b.1\n%s1 = ge %bh, %h\nrequire %s1, \"\"\n%s2 = eq %bw, %w\nrequire %s2, \"\"\n" + in_image + R"(
        %g1 = lt %r, %h
        %g2 = lt %c, %w
        %g = and %g1, %g2
        if %g {
          %h1 = sub %h, %o
          %w1 = sub %w, %o
          %i1 = gt %r, %z
          %i2 = lt %r, %h1
          %i3 = gt %c, %z
          %i4 = lt %c, %w1
          %j1 = and %i1, %i2
          %j2 = and %j1, %i3
          %inside = and %j2, %i4
          %up = sub %r, %o
          %down = add %r, %o
          %left = sub %c, %o
          %right = add %c, %o
          if %inside {
            %v0 = load a[%r, %c] proven
            %v1 = load a[%up, %c] proven
            %v2 = load a[%down, %c] proven
            %v3 = load a[%r, %left] proven
            %v4 = load a[%r, %right] proven
            %two = const 2 : u32
            %down2 = add %r, %two
            %up2 = sub %r, %two
            %v5 = load a[%down2, %c] checked
            %v6 = load a[%up2, %c] checked
            store b[%r, %c], %v0 proven
            store b[%down, %right], %v0 proven
          } else {
            %v7 = load a[%r, %c] proven
            %v8 = load a[%up, %c] checked
            %v9 = load a[%down, %c] checked
            store b[%r, %c], %v7 proven
          }
        })"},
      {"an empty image makes h - 1 the largest number", "", in_image + R"(
        %h1 = sub %h, %o
        %w1 = sub %w, %o
        %g1 = lt %r, %h1
        %g2 = lt %c, %w1
        %g = and %g1, %g2
        if %g {
          %v0 = load a[%r, %c] checked
        })"},
      {"an image that is not empty", "",
       "%h0 = extent a.0\n%k0 = const 0 : u32\n%some = gt %h0, %k0\nrequire %some, \"\"\n%w0 = extent a.1\n%some2 = ge %w0, %k0\nrequire "
       "%some2, \"\"\n" +
           in_image + R"(
        %h1 = sub %h, %o
        %g1 = lt %r, %h1
        %g2 = lt %c, %w
        %g = and %g1, %g2
        if %g {
          %v0 = load a[%r, %c] proven
          %down = add %r, %o
          %v1 = load a[%down, %c] proven
        })"},
      {"r + 1 < h alone lets the largest number through", "", in_image + R"(
        %down = add %r, %o
        %g1 = lt %down, %h
        %g2 = lt %c, %w
        %g = and %g1, %g2
        if %g {
          %v0 = load a[%r, %c] checked
          %v1 = load a[%down, %c] proven
          %g3 = lt %r, %h
          if %g3 {
            %v2 = load a[%r, %c] proven
          }
        })"},
      {"from the end", "", in_image + R"(
        %g1 = lt %r, %h
        %g2 = lt %c, %w
        %g = and %g1, %g2
        %h1 = sub %h, %o
        %mirror = sub %h1, %r
        if %g {
          %v0 = load a[%mirror, %c] proven
          %past = sub %h, %r
          %v1 = load a[%past, %c] checked
        }
        %v2 = load a[%mirror, %c] checked)"},
      {"clamped to the border", "", in_image + R"(
        %g1 = lt %r, %h
        %g2 = lt %c, %w
        %g = and %g1, %g2
        if %g {
          %h1 = sub %h, %o
          %down = add %r, %o
          %d = min %down, %h1
          %v0 = load a[%d, %c] proven
          %up = sub %r, %o
          %i1 = gt %r, %z
          %u = select %i1, %up, %z
          %v1 = load a[%u, %c] proven
          %i2 = ge %r, %z
          %u2 = select %i2, %up, %z
          %v2 = load a[%u2, %c] checked
        })"},
      {"periodic", "", in_image + R"(
        %g1 = lt %r, %h
        %g2 = lt %c, %w
        %g = and %g1, %g2
        %down = add %r, %o
        %m = rem %down, %h
        if %g {
          %v0 = load a[%m, %c] proven
        }
        %v1 = load a[%m, %c] checked)"},
      {"signed coordinates", "", in_image + R"(
        %ri = cast %r : i32
        %ci = cast %c : i32
        %hi = cast %h : i32
        %wi = cast %w : i32
        %zero = const 0 : i32
        %one = const 1 : i32
        %g1 = ge %ri, %zero
        %g2 = lt %ri, %hi
        %g3 = ge %ci, %zero
        %g4 = lt %ci, %wi
        %g5 = and %g1, %g2
        %g6 = and %g3, %g4
        %g = and %g5, %g6
        if %g {
          %v0 = load a[%ri, %ci] proven
          %up = sub %ri, %one
          %v1 = load a[%up, %ci] checked
          %i1 = ge %up, %zero
          if %i1 {
            %v2 = load a[%up, %ci] proven
          }
        }
        if %g2 {
          if %g4 {
            %v3 = load a[%ri, %ci] checked
          }
        })"},
  };
  for (const auto& row : rows) {
    std::string body = row[2];
    // The first rows ask about extents before the common head defines them.
    if (body.find("%s1 =") != std::string::npos) body = "%h9 = extent a.0\n%w9 = extent a.1\n" + body;
    const auto replace_first = [&](const std::string& from, const std::string& to) {
      const std::size_t at = body.find(from);
      if (at != std::string::npos) body.replace(at, from.size(), to);
    };
    replace_first("ge %bh, %h\n", "ge %bh, %h9\n");
    replace_first("eq %bw, %w\n", "eq %bw, %w9\n");
    const Row one[] = {{row[0].c_str(), row[1].c_str(), body.c_str()}};
    check_rows(one, "buffer a : u32[*, *] in\n");
  }
}

TEST_CASE("a negative index is out of range even below the extent") {
  const Row rows[] = {
      {"unknown sign", "",
       "%i = param i\n%n = size y\n%m = cast %n : i32\n%c = lt %i, %m\n%v = const 1 : u32\nif %c {\nstore y[%i], %v checked\n%z = const 0 "
       ": i32\n%d = ge %i, %z\nif %d {\nstore y[%i], %v proven\n}\n}"},
      {"as unsigned it is above every extent", "",
       "%i = param i\n%u = cast %i : u32\n%n = size y\n%c = lt %u, %n\n%v = const 1 : u32\nif %c {\nstore y[%u], %v proven\n}"},
      {"a subtraction that wraps", "",
       "%i = global_id.x\n%n = size y\n%c = lt %i, %n\n%o = const 1 : u32\n%j = sub %i, %o\nif %c {\nstore y[%j], %i checked\n}"},
      {"a subtraction of something no larger", "",
       "%i = global_id.x\n%k = global_id.y\n%n = size y\n%c = lt %i, %n\n%d = le %k, %i\n%e = and %c, %d\n%j = sub %i, %k\nif %e {\nstore "
       "y[%j], %i proven\n}"},
      {"adding a constant that stands for minus one", "",
       "%i = global_id.x\n%n = size y\n%c = lt %i, %n\n%o = const 0xffffffff : u32\n%j = add %i, %o\nif %c {\nstore y[%j], %i checked\n}"},
  };
  check_rows(rows, "buffer y : u32[*] inout\nscalar i : i32\n");
}

TEST_CASE("an unchecked kernel takes the author's word") {
  Kernel k = kernel_of("options checked=false\nbuffer y : u32[*] inout\n", "%i = global_id.x\nstore y[%i], %i");
  CHECK(decide_bounds(k) == 0);
  CHECK(k.op(1).bounds == Bounds::Proven);
}

TEST_CASE("deciding again, with other guards gone, decides anew") {
  Kernel k = kernel_of("buffer y : u32[*] inout\n", "%i = global_id.x\nstore y[%i], %i proven");
  CHECK(decide_bounds(k) == 1);
  CHECK(k.op(1).bounds == Bounds::Checked);
}

TEST_CASE("under conditions that contradict each other nothing runs, and the prover asks on") {
  const Row rows[] = {
      {"a divisor that is 0 and positive", "",
       "%n = param n\n%i = global_id.x\n%z = const 0 : u32\n%p = le %n, %z\nrequire %p, \"\"\n%c = gt %n, %z\n%q = div %i, %n\n%r = rem "
       "%i, "
       "%n\n%s = sub %q, %r\nif %c {\nstore y[%q], %i checked\nstore y[%r], %i proven\nstore y[%s], %i checked\n}"},
      {"a shift count that is negative and not", "scalar m : i32\n",
       "%m = param m\n%z = const 0 : i32\n%o = const 1 : i32\n%p = lt %m, %z\nrequire %p, \"\"\n%c = ge %m, %z\n%q = shl %o, %m\n%r = shr "
       "%o, "
       "%m\n%v = const 1 : u32\nif %c {\nstore y[%q], %v checked\nstore y[%r], %v checked\n}"},
  };
  check_rows(rows, "buffer y : u32[*] inout\nscalar n : u32\n");
}
