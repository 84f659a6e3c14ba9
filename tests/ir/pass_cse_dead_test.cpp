#include "pass_fixture.h"

using namespace kiln::ir;
using namespace kiln::ir::test;

TEST_CASE("equal pure operations merge where the first one is visible") {
  constexpr const char* decls = "buffer b : u32[*] inout\nscalar n : u32\nslot s : u32\n";
  const Rewrite rows[] = {
      {"queries and arithmetic, operands in either order", decls,
       "%a = thread_id.x\n%b = thread_id.x\n%c = add %a, %b\n%n = param n\n%m = param n\n%d = add %b, %a\n%e = mul %n, %c\n%f = mul %d, "
       "%m\nstore b[%e], %f",
       "%a = thread_id.x\n%c = add %a, %a\n%n = param n\n%e = mul %n, %c\nstore b[%e], %e"},
      {"order matters for sub", decls, "%a = thread_id.x\n%n = param n\n%c = sub %a, %n\n%d = sub %n, %a\nstore b[%c], %d",
       "%a = thread_id.x\n%n = param n\n%c = sub %a, %n\n%d = sub %n, %a\nstore b[%c], %d"},
      {"axes, types and attributes differ", decls,
       "%a = thread_id.x\n%b = thread_id.y\n%c = extent b.0 : u64\n%d = extent b.0 : u32\nstore b[%a], %b\nstore b[%c], %d",
       "%a = thread_id.x\n%b = thread_id.y\n%c = extent b.0 : u64\n%d = extent b.0 : u32\nstore b[%a], %b\nstore b[%c], %d"},
      {"from around into a region, not out of one, not across", decls,
       "%n = param n\n%i = const 0 : u32\n%c = lt %i, %n\nif %c {\n%a = add %n, %n\n%j = const 0 : u32\nstore b[%j], %a\n} else {\n%a2 = "
       "add %n, %n\nstore b[%i], %a2\n}\n%a3 = add %n, %n\nstore b[%n], %a3",
       "%n = param n\n%i = const 0 : u32\n%c = lt %i, %n\nif %c {\n%a = add %n, %n\nstore b[%i], %a\n} else {\n%a2 = add %n, %n\nstore "
       "b[%i], %a2\n}\n%a3 = add %n, %n\nstore b[%n], %a3"},
      {"loads and gets do not merge", decls,
       "%n = param n\n%a = load b[%n]\nstore b[%n], %n\n%b = load b[%n]\n%g = get s\nset s, %b\n%h = get s\nstore b[%a], %g\nstore b[%b], "
       "%h",
       "%n = param n\n%a = load b[%n]\nstore b[%n], %n\n%b = load b[%n]\n%g = get s\nset s, %b\n%h = get s\nstore b[%a], %g\nstore b[%b], "
       "%h"},
      {"votes do not merge", decls, "%n = param n\n%c = lt %n, %n\n%a = ballot %c\n%b = ballot %c\nstore b[%a], %b",
       "%n = param n\n%c = lt %n, %n\n%a = ballot %c\n%b = ballot %c\nstore b[%a], %b"},
  };
  check_rewrites(rows, eliminate_common);
}

TEST_CASE("what nobody uses goes, what others may see stays") {
  constexpr const char* decls = "buffer b : u32[*] inout\nscalar n : u32\nslot s : u32\nslot t : u32\n";
  const Rewrite rows[] = {
      {"chains of pure operations and loads", decls, "%n = param n\n%a = add %n, %n\n%b = load b[%a]\n%c = mul %b, %a\nbarrier", "barrier"},
      {"stores, atomics, barriers, warp operations and requires stay", decls,
       "%n = param n\n%c = le %n, %n\nrequire %c, \"n\"\n%a = atomic_add b[%n], %n\n%v = vote_any %c\n%w = warp_reduce.add "
       "%n\nbarrier\nstore b[%n], %n",
       "%n = param n\n%c = le %n, %n\nrequire %c, \"n\"\n%a = atomic_add b[%n], %n\n%v = vote_any %c\n%w = warp_reduce.add "
       "%n\nbarrier\nstore b[%n], %n"},
      {"sets of a slot that nothing gets, and what they needed", decls, "%n = param n\n%a = load b[%n]\nset s, %a\nbarrier", "barrier"},
      {"slots that only feed each other in a loop keep each other", decls,
       "%n = param n\n%o = const 1 : u32\nfor %i = %o, %n, %o : u32 {\n%g = get s\nset t, %g\n%h = get t\nset s, %h\n}",
       "%n = param n\n%o = const 1 : u32\nfor %i = %o, %n, %o : u32 {\n%g = get s\nset t, %g\n%h = get t\nset s, %h\n}"},
      {"control flow that has become empty, inside out", decls,
       "%n = param n\n%o = const 1 : u32\n%c = lt %n, %o\nfor %i = %o, %n, %o : u32 {\nif %c {\n%a = load b[%n]\n}\n}\nbarrier", "barrier"},
      {"a while stays: it may wait for something", decls, "%n = param n\nwhile {\n%a = load b[%n]\n%c = lt %a, %n\nyield %c\n} do {\n}",
       "%n = param n\nwhile {\n%a = load b[%n]\n%c = lt %a, %n\nyield %c\n} do {\n}"},
      {"a branch that only returns stays", decls, "%n = param n\n%o = const 1 : u32\n%c = lt %n, %o\nif %c {\nreturn\n}\nbarrier",
       "%n = param n\n%o = const 1 : u32\n%c = lt %n, %o\nif %c {\nreturn\n}\nbarrier"},
  };
  check_rewrites(rows, eliminate_dead);
}

TEST_CASE("an unused load stays in a checked kernel until it is proven in range") {
  const char* body = "%i = const 3 : u32\n%x = load b[%i]";
  Kernel k = kernel_of("buffer b : u32[*] inout\n", body);
  eliminate_dead(k);
  CHECK(canonical(k) == canonical(kernel_of("buffer b : u32[*] inout\n", body)));
  for (Op& op : k.ops)
    if (op.code == Opcode::Load) op.bounds = Bounds::Proven;
  eliminate_dead(k);
  CHECK(k.regions[0].ops.empty());
}
