#include "pass_fixture.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

namespace {

void fold_and_clean(Kernel& k) {
  fold_and_simplify(k);
  eliminate_common(k);
  eliminate_dead(k);
}

}  // namespace

TEST_CASE("an expression folds to what it equals, bit for bit, and to nothing else") {
  struct Row {
    const char *type, *before, *after;  // of %x, %y (loaded) and %r (stored)
  };
  const Row rows[] = {
      // integers
      {"u32", "%k = const 0 : u32\n%r = add %x, %k", "x"},
      {"i32", "%k = const 0 : i32\n%r = sub %x, %k", "x"},
      {"i32", "%r = sub %x, %x", "%r = const 0 : i32"},
      {"i32", "%k = const 0 : i32\n%r = sub %k, %x", nullptr},
      {"u64", "%k = const 1 : u64\n%r = mul %k, %x", "x"},
      {"u64", "%k = const 0 : u64\n%r = mul %x, %k", "%r = const 0 : u64"},
      {"i64", "%k = const 1 : i64\n%r = div %x, %k", "x"},
      {"i64", "%r = div %x, %x", nullptr},  // 0 / 0 is all ones
      {"u32", "%k = const 0 : u32\n%r = div %k, %x", nullptr},
      {"u32", "%k = const 1 : u32\n%r = rem %x, %k", "%r = const 0 : u32"},
      {"u32", "%r = rem %x, %x", "%r = const 0 : u32"},
      {"u32", "%k = const 0 : u32\n%r = and %x, %k", "%r = const 0 : u32"},
      {"u32", "%k = const 0xffffffff : u32\n%r = and %k, %x", "x"},
      {"i32", "%k = const -1 : i32\n%r = or %x, %k", "%r = const -1 : i32"},
      {"u32", "%k = const 0 : u32\n%r = or %x, %k", "x"},
      {"u32", "%r = and %x, %x", "x"},
      {"u32", "%r = xor %x, %x", "%r = const 0 : u32"},
      {"u32", "%k = const 32 : u32\n%r = shl %x, %k", "%r = const 0 : u32"},
      {"u32", "%k = const 32 : u32\n%r = shr %x, %k", "%r = const 0 : u32"},
      {"i32", "%k = const 32 : i32\n%r = shr %x, %k", nullptr},  // the sign
      {"u32", "%k = const 0 : u32\n%r = shl %x, %k", "x"},
      {"u32", "%r = min %x, %x", "x"},
      {"i32", "%n = neg %x\n%r = neg %n", "x"},
      {"i32", "%n = not %x\n%r = not %n", "x"},
      {"u32", "%r = abs %x", "x"},
      {"i32", "%n = neg %x\n%r = abs %n", "%r = abs %x"},
      {"u32", "%w = cast %x : u64\n%r = cast %w : u32", "x"},
      {"u32", "%w = cast %x : i32\n%r = cast %w : u32", "x"},
      {"u64", "%w = cast %x : u32\n%r = cast %w : u64", nullptr},
      {"u32", "%w = cast %x : f32\n%r = cast %w : u32", nullptr},
      {"u32", "%w = bit_cast %x : f32\n%r = bit_cast %w : u32", "x"},
      {"u32", "%a = const 5 : u32\n%b = const 7 : u32\n%s = mul %a, %b\n%r = add %s, %b", "%r = const 42 : u32"},
      // floats
      {"f32", "%k = const 0.0 : f32\n%r = add %x, %k", nullptr},  // -0 + 0 is +0
      {"f32", "%k = const -0.0 : f32\n%r = add %x, %k", "x"},
      {"f32", "%k = const -0.0 : f32\n%r = add %k, %x", "x"},
      {"f32", "%k = const 0.0 : f32\n%r = sub %x, %k", "x"},
      {"f32", "%k = const -0.0 : f32\n%r = sub %x, %k", nullptr},
      {"f32", "%r = sub %x, %x", nullptr},
      {"f32", "%k = const 0.0 : f32\n%r = mul %x, %k", nullptr},
      {"f32", "%k = const 1.0 : f32\n%r = mul %x, %k", "x"},
      {"f64", "%k = const 1.0 : f64\n%r = div %x, %k", "x"},
      {"f64", "%r = div %x, %x", nullptr},
      {"f64", "%n = neg %x\n%r = neg %n", "x"},
      {"f32", "%n = neg %x\n%r = abs %n", "%r = abs %x"},
      {"f32", "%r = max %x, %x", "x"},
      {"f32", "%a = const 1.5 : f32\n%b = const 2.0 : f32\n%r = fma %a, %b, %b", "%r = const 5.0 : f32"},
      // select
      {"f32", "%c = const true : bool\n%r = select %c, %x, %y", "x"},
      {"f32", "%c = const false : bool\n%r = select %c, %y, %x", "x"},
      {"f32", "%c = lt %x, %y\n%r = select %c, %x, %x", "x"},
      {"u32", "%c = lt %x, %y\n%n = not %c\n%r = select %n, %x, %y", "%c = ge %x, %y\n%r = select %c, %x, %y"},
      {"f32", "%c = lt %x, %y\n%n = not %c\n%r = select %n, %x, %y", "%c = lt %x, %y\n%r = select %c, %y, %x"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.type));
    CAPTURE(std::string(row.before));
    const std::string declarations = std::string("buffer b : ") + row.type + "[*] inout\n";
    const std::string head = "%i = const 0 : u32\n%j = const 1 : u32\n%x = load b[%i]\n%y = load b[%j]\n";
    const std::string kept = "store b[%j], %y\n";  // keeps both loads alive
    const std::string before = head + row.before + "\nstore b[%i], %r\n" + kept;
    std::string after = before;
    if (row.after)
      after = std::string(row.after) == "x" ? head + "store b[%i], %x\n" + kept : head + row.after + "\nstore b[%i], %r\n" + kept;
    Kernel k = kernel_of(declarations, before), expected = kernel_of(declarations, after);
    fold_and_clean(k);
    eliminate_common(expected);
    eliminate_dead(expected);
    CHECK(canonical(k) == canonical(expected));
  }
}

TEST_CASE("conditions fold, floats keeping what NaN makes of them") {
  struct Row {
    const char *type, *before, *after;
  };
  const Row rows[] = {
      {"u32", "%r = lt %x, %x", "%r = const false : bool"},
      {"u32", "%r = ge %x, %x", "%r = const true : bool"},
      {"f32", "%r = eq %x, %x", nullptr},
      {"f32", "%r = ge %x, %x", nullptr},
      {"f32", "%r = lt %x, %x", "%r = const false : bool"},
      {"u32", "%k = const 0 : u32\n%r = lt %x, %k", "%r = const false : bool"},
      {"u32", "%k = const 0 : u32\n%r = le %k, %x", "%r = const true : bool"},
      {"i32", "%k = const 0 : i32\n%r = lt %x, %k", nullptr},
      {"u32", "%c = lt %x, %y\n%r = not %c", "%r = ge %x, %y"},
      {"f32", "%c = lt %x, %y\n%r = not %c", nullptr},
      {"f32", "%c = eq %x, %y\n%r = not %c", "%r = ne %x, %y"},
      {"f32", "%c = lt %x, %y\n%k = const true : bool\n%r = and %c, %k", "%r = lt %x, %y"},
      {"f32", "%c = lt %x, %y\n%k = const false : bool\n%r = eq %c, %k", "%c = lt %x, %y\n%r = not %c"},
      {"f32", "%c = lt %x, %y\n%k = const true : bool\n%r = xor %c, %k", "%c = lt %x, %y\n%r = not %c"},
      {"f32", "%c = lt %x, %y\n%t = const true : bool\n%f = const false : bool\n%r = select %c, %t, %f", "%r = lt %x, %y"},
      {"f32", "%c = lt %x, %y\n%d = gt %x, %y\n%f = const false : bool\n%r = select %c, %d, %f",
       "%c = lt %x, %y\n%d = gt %x, %y\n%r = and %c, %d"},
      {"f32", "%c = lt %x, %y\n%d = gt %x, %y\n%r = select %c, %c, %d", "%c = lt %x, %y\n%d = gt %x, %y\n%r = or %c, %d"},
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.type));
    CAPTURE(std::string(row.before));
    const std::string declarations = std::string("buffer b : ") + row.type + "[*] inout\nbuffer o : bool[*] out\n";
    const std::string head = "%i = const 0 : u32\n%j = const 1 : u32\n%x = load b[%i]\n%y = load b[%j]\n";
    const std::string tail = "\nstore o[%i], %r\nstore b[%i], %y\nstore b[%j], %x\n";
    Kernel k = kernel_of(declarations, head + row.before + tail);
    Kernel expected = kernel_of(declarations, head + (row.after ? row.after : row.before) + tail);
    fold_and_clean(k);
    CHECK(canonical(k) == canonical(expected));
  }
}

TEST_CASE("control flow with a known outcome becomes what it does") {
  constexpr const char* decls = "buffer b : u32[*] inout\nslot s : u32\n";
  const Rewrite rows[] = {
      {"a taken branch", decls, "%c = const true : bool\n%i = const 0 : u32\nif %c {\nstore b[%i], %i\n} else {\nbarrier\n}",
       "%i = const 0 : u32\nstore b[%i], %i"},
      {"a branch not taken", decls, "%c = const false : bool\n%i = const 0 : u32\nif %c {\nstore b[%i], %i\n}\nbarrier", "barrier"},
      {"code after a certain return", decls, "%c = const true : bool\n%i = const 0 : u32\nif %c {\nreturn\n}\nstore b[%i], %i", "return"},
      {"code after an if that leaves on both sides", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %v, %i\n%d = ne %v, %i\nif %d {\nstore b[%i], %i\nreturn\n} else {\nreturn\n}\nstore "
       "b[%i], %v",
       "%i = const 0 : u32\n%v = load b[%i]\n%d = ne %v, %i\nif %d {\nstore b[%i], %i\nreturn\n} else {\nreturn\n}"},
      {"an empty branch", decls, "%i = const 0 : u32\n%v = load b[%i]\n%c = ne %v, %i\nif %c {\n}\nbarrier", "barrier"},
      {"a known case", decls,
       "%i = const 2 : u32\n%j = const 0 : u32\nswitch %i {\ncase 1 {\nbarrier\n}\ncase 2 {\nstore b[%i], %j\n}\ndefault "
       "{\nwarp_sync\n}\n}",
       "%i = const 2 : u32\n%j = const 0 : u32\nstore b[%i], %j"},
      {"a known default", decls,
       "%i = const 3 : u32\n%j = const 0 : u32\nswitch %i {\ncase 1 {\nbarrier\n}\ncase 2 {\nstore b[%i], %j\n}\ndefault "
       "{\nwarp_sync\n}\n}",
       "warp_sync"},
      {"a loop without an iteration", decls,
       "%a = const 4 : u32\n%b = const 4 : u32\n%s = const 1 : u32\nfor %i = %a, %b, %s : u32 {\nbarrier\n}\nwarp_sync", "warp_sync"},
      {"a signed loop that counts from below zero runs", decls,
       "%a = const -1 : i32\n%b = const 0 : i32\n%s = const 1 : i32\nfor %i = %a, %b, %s : i32 {\nbarrier\n}",
       "%a = const -1 : i32\n%b = const 0 : i32\n%s = const 1 : i32\nfor %i = %a, %b, %s : i32 {\nbarrier\n}"},
      {"a while that is false at once runs its condition once", decls,
       "while {\n%i = const 0 : u32\nstore b[%i], %i\n%c = const false : bool\nyield %c\n} do {\nbarrier\n}",
       "%i = const 0 : u32\nstore b[%i], %i"},
      {"a while whose condition may break stays", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%d = ne %v, %i\nwhile {\nif %d {\nstore b[%i], %i\nbreak\n}\n%c = const false : bool\nyield "
       "%c\n} do {\nbarrier\n}",
       "%i = const 0 : u32\n%v = load b[%i]\n%d = ne %v, %i\nwhile {\nif %d {\nstore b[%i], %i\nbreak\n}\n%c = const false : bool\nyield "
       "%c\n} do {\nbarrier\n}"},
      {"a return in a while's condition is not moved before its yield", decls,
       "while {\n%d = const true : bool\nif %d {\nreturn\n}\n%c = const true : bool\nyield %c\n} do {\nbarrier\n}",
       "while {\n%d = const true : bool\nif %d {\nreturn\n}\nyield %d\n} do {\nbarrier\n}"},
  };
  check_rewrites(rows, fold_and_clean);
}

TEST_CASE("gets give what was set, where that is certain") {
  constexpr const char* decls = "buffer b : u32[*] inout\nslot s : u32\nslot t : u32\n";
  const Rewrite rows[] = {
      {"straight on", decls, "%i = const 0 : u32\n%v = load b[%i]\nset s, %v\n%g = get s\nstore b[%i], %g",
       "%i = const 0 : u32\n%v = load b[%i]\nstore b[%i], %v"},
      {"zero before the first set", decls, "%g = get s\nstore b[%g], %g", "%g = const 0 : u32\nstore b[%g], %g"},
      {"two gets of something unknown", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nif %c {\nset s, %v\nbarrier\n}\n%g = get s\n%h = get s\n%r = sub %g, "
       "%h\nstore b[%i], %r",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nif %c {\nbarrier\n}\nstore b[%i], %i"},
      {"set before a loop, not in it", decls,
       "%i = const 0 : u32\n%n = const 9 : u32\n%o = const 1 : u32\n%v = load b[%i]\nset s, %v\nfor %j = %i, %n, %o : u32 {\n%g = get "
       "s\nstore b[%j], %g\n}",
       "%i = const 0 : u32\n%n = const 9 : u32\n%o = const 1 : u32\n%v = load b[%i]\nfor %j = %i, %n, %o : u32 {\nstore b[%j], %v\n}"},
      {"set in the loop after the get", decls,
       "%i = const 0 : u32\n%n = const 9 : u32\n%o = const 1 : u32\nfor %j = %i, %n, %o : u32 {\n%g = get s\nstore b[%j], %g\nset s, %j\n}",
       "%i = const 0 : u32\n%n = const 9 : u32\n%o = const 1 : u32\nfor %j = %i, %n, %o : u32 {\n%g = get s\nstore b[%j], %g\nset s, "
       "%j\n}"},
      {"set on one side of a branch", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\nset s, %i\nbarrier\n}\n%g = get s\nstore b[%i], %g",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\nset s, %i\nbarrier\n}\n%g = get s\nstore b[%i], %g"},
      {"set on a side that leaves", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\nset s, %i\nbarrier\nreturn\n}\n%g = get s\nstore b[%i], "
       "%g",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nif %c {\nbarrier\nreturn\n}\nstore b[%i], %v"},
  };
  check_rewrites(rows, fold_and_clean);
}

TEST_CASE("a small branch that only computes becomes a select") {
  constexpr const char* decls = "buffer b : u32[*] inout\nslot s : u32\nslot t : bool\n";
  const Rewrite rows[] = {
      {"one side", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\n%w = add %v, %v\nset s, %w\n}\n%g = get s\nstore b[%i], "
       "%g",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\n%w = add %v, %v\n%g = select %c, %w, %v\nstore b[%i], %g"},
      {"both sides", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nif %c {\n%w = add %v, %v\nset s, %w\n} else {\n%u = mul %v, %v\nset s, "
       "%u\n}\n%g = get s\nstore b[%i], %g",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\n%w = add %v, %v\n%u = mul %v, %v\n%g = select %c, %w, %u\nstore b[%i], %g"},
      {"an unset local keeps its zero", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nif %c {\nset s, %v\n}\n%g = get s\nstore b[%i], %g",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\n%g = select %c, %v, %i\nstore b[%i], %g"},
      {"the short-circuit and of two conditions", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset t, %c\nif %c {\n%d = lt %v, %v\n%w = add %v, %v\n%e = ne %w, %v\nset t, "
       "%e\n}\n%g = get t\nif %g {\nstore b[%i], %v\n}",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\n%w = add %v, %v\n%e = ne %w, %v\n%g = and %c, %e\nif %g {\nstore b[%i], "
       "%v\n}"},
      {"a division is not computed in vain", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\n%w = div %i, %v\nset s, %w\n}\n%g = get s\nstore b[%i], "
       "%g",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\n%w = div %i, %v\nset s, %w\n}\n%g = get s\nstore b[%i], "
       "%g"},
      {"a load is never moved out of its guard", decls,
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\n%w = load b[%v]\nset s, %w\n}\n%g = get s\nstore b[%i], "
       "%g",
       "%i = const 0 : u32\n%v = load b[%i]\n%c = lt %i, %v\nset s, %v\nif %c {\n%w = load b[%v]\nset s, %w\n}\n%g = get s\nstore b[%i], "
       "%g"},
  };
  check_rewrites(rows, fold_and_clean);
}

TEST_CASE("a declared block shape and static memories are constants") {
  const Rewrite rows[] = {
      {"shape", "block_size 32, 1, 1\nbuffer b : u32[*] inout\nshared s : f32[4, 6]",
       "%a = block_dim.x\n%b = thread_id.y\n%c = warp_id\n%d = extent s.1 : u32\n%e = size s : u32\nstore b[%a], %b\nstore b[%c], "
       "%d\nstore b[%e], %e",
       "%a = const 32 : u32\n%b = const 0 : u32\n%d = const 6 : u32\n%e = const 24 : u32\nstore b[%a], %b\nstore b[%b], %d\nstore b[%e], "
       "%e"},
      {"size of rank one is its extent", "buffer b : u32[*] inout", "%a = size b : u32\n%b = extent b.0 : u32\nstore b[%a], %b",
       "%a = extent b.0 : u32\nstore b[%a], %a"},
      {"no shape declared", "buffer b : u32[*] inout", "%a = block_dim.x\n%b = thread_id.y\nstore b[%a], %b",
       "%a = block_dim.x\n%b = thread_id.y\nstore b[%a], %b"},
  };
  check_rewrites(rows, fold_and_clean);
}

TEST_CASE("a step that folding finds to be zero or below is legal, while one that the author wrote is refused") {
  const std::string head =
      "kir 1\nkernel \"k\" {\nbuffer x : i32[*] inout\nscalar n : i32\nbody {\n%n = param n\n"
      "%k0 = const 0 : i32\n%k1 = const 1 : i32\n%ten = const 10 : i32\n";
  const std::string loop = "for %i = %k1, %ten, %z : i32 {\nstore x[%i], %i\n}\n}\n}\n";
  for (const char* step : {"%z = and %n, %k0\n", "%z = sub %k0, %k1\n"}) CHECK_NOTHROW(prepare(parse_kernel(head + step + loop)));
  for (const char* step : {"%z = const 0 : i32\n", "%z = const -1 : i32\n"})
    CHECK_THROWS_AS(prepare(parse_kernel(head + step + loop)), IrError);
}
