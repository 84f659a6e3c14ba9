// Visibility, index use, requirements and the shared-memory layout.
#include <doctest/doctest.h>

#include "kiln/ir/builder.h"
#include "kiln/ir/passes.h"

using namespace kiln::ir;

TEST_CASE("visibility says what is done to each buffer, in the order of buffer parameters") {
  Kernel k;
  Builder b(k);
  const std::uint32_t dead = b.buffer("dead", Type::U32, 1, Access::InOut);
  b.scalar("n", Type::U32);
  const std::uint32_t in = b.buffer("in", Type::U32, 1, Access::InOut), out = b.buffer("out", Type::U32, 1, Access::InOut),
                      both = b.buffer("both", Type::U32, 1, Access::InOut), bins = b.buffer("bins", Type::U32, 1, Access::InOut);
  const std::uint32_t shared = b.shared("s", Type::U32, {4});
  const ValueId zero = b.const_u32(0);
  b.size(dead);  // asking for an extent touches no byte
  const ValueId v = b.load(in, {zero});
  const OpId branch = b.if_(b.const_bool(true));
  b.set_region(k.op(branch).regions[1]);
  b.store(out, {zero}, v);
  b.store(both, {zero}, b.load(both, {zero}));
  b.atomic(Opcode::AtomicAdd, bins, {zero}, zero);
  b.store(shared, {zero}, zero);
  const std::vector<Visibility> expected{Visibility::Dead, Visibility::ReadOnly, Visibility::WriteOnly, Visibility::ReadWrite,
                                         Visibility::ReadWrite};
  CHECK(analyze_visibility(k) == expected);
  std::vector<bool> atomics(k.mems.size(), false);
  atomics[bins] = true;
  CHECK(atomic_mems(k) == atomics);
}

TEST_CASE("accesses that no region names do not count") {
  Kernel k;
  Builder b(k);
  const std::uint32_t x = b.buffer("x", Type::U32, 1, Access::InOut);
  b.set_region(b.new_region());
  b.store(x, {b.const_u32(0)}, b.const_u32(1));
  CHECK(analyze_visibility(k) == std::vector<Visibility>{Visibility::Dead});
}

TEST_CASE("index use names every 32-bit form and no 64-bit one") {
  Kernel k;
  Builder b(k);
  const std::uint32_t x = b.buffer("x", Type::U32, 2, Access::In), y = b.buffer("y", Type::U32, 1, Access::In);
  b.query(Opcode::GlobalId, 1, Type::U32);
  b.query(Opcode::GlobalId, 0, Type::U64);
  b.extent(x, 1, Type::U32);
  b.extent(x, 0, Type::U64);
  b.size(x, Type::U64);
  b.size(y, Type::U32);
  const IndexUse use = analyze_index_use(k);
  CHECK(use.global_id32 == std::array<bool, 3>{false, true, false});
  CHECK(use.extent32[x] == std::array<bool, kMaxRank>{false, true, false, false});
  CHECK(use.extent32[y] == std::array<bool, kMaxRank>{});
  CHECK_FALSE(use.size32[x]);
  CHECK(use.size32[y]);
}

TEST_CASE("today's operations need nothing beyond the oldest architecture") {
  Kernel k;
  Builder b(k);
  const std::uint32_t x = b.buffer("x", Type::F64, 1, Access::InOut);
  b.atomic(Opcode::AtomicAdd, x, {b.const_u32(0)}, b.const_f64(1));
  const Requirement r = analyze_requirements(k);
  CHECK(r.min_sm == 75);
  CHECK(r.reason.empty());
}

TEST_CASE("shared arrays lie one after the other at multiples of 16 bytes, the dynamic one after them") {
  Kernel k;
  Builder b(k);
  const std::uint32_t global = b.buffer("x", Type::F32, 1, Access::In), first = b.shared("a", Type::F32, {3}),
                      local = b.local("l", Type::F32, {3}), dynamic = b.dynamic_shared("d", Type::F32),
                      second = b.shared("b", Type::F64, {2, 3}), third = b.shared("c", Type::Bool, {1});
  const SharedLayout l = layout_shared(k);
  CHECK(l.offset[first] == 0);
  CHECK(l.offset[second] == 16);
  CHECK(l.offset[third] == 64);
  CHECK(l.static_bytes == 65);
  CHECK(l.dynamic_mem == dynamic);
  for (const std::uint32_t m : {global, local, dynamic}) CHECK(l.offset[m] == ~std::uint64_t{0});
}

TEST_CASE("a shared array of absurd size never gets a small one by wrapping") {
  Kernel k;
  Builder b(k);
  b.shared("a", Type::F64, {std::uint64_t{1} << 40, std::uint64_t{1} << 40});
  b.shared("b", Type::F64, {2});
  CHECK(layout_shared(k).static_bytes > (std::uint64_t{1} << 62));
}
