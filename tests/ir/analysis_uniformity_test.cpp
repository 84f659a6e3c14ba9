// What the uniformity analysis may and may not claim. Each case builds a small kernel and states the level of a value, slot or region.
#include <doctest/doctest.h>

#include "kiln/ir/analysis.h"
#include "kiln/ir/builder.h"

using namespace kiln::ir;

namespace {

struct Fixture {
  Kernel k;
  Builder b{k};
  Fixture() { k.name = "k"; }
  Level of(ValueId v) { return analyze_uniformity(k).value[v]; }
  Level slot_level(std::uint32_t s) { return analyze_uniformity(k).slot[s]; }
  Level region_level(RegionId r) { return analyze_uniformity(k).region[r]; }
  ValueId lane_cond() { return b.binary(Opcode::Lt, b.query(Opcode::LaneId), b.const_u32(7)); }
  ValueId block_cond() { return b.binary(Opcode::Lt, b.query(Opcode::BlockId), b.const_u32(7)); }
  ValueId warp_cond() { return b.warp_vote(Opcode::VoteAny, lane_cond()); }
};

}  // namespace

TEST_CASE("launch queries have the level of what they name") {
  Fixture f;
  const std::uint32_t x = f.b.buffer("x", Type::F32, 1, Access::In);
  const std::uint32_t a = f.b.scalar("a", Type::F32);
  const ValueId block = f.b.query(Opcode::BlockId), thread = f.b.query(Opcode::ThreadId), warp = f.b.query(Opcode::WarpId),
                lane = f.b.query(Opcode::LaneId), global = f.b.query(Opcode::GlobalId), dim = f.b.query(Opcode::BlockDim),
                grid = f.b.query(Opcode::GridDim), size = f.b.size(x), p = f.b.param(a), c = f.b.const_u32(1),
                sum = f.b.binary(Opcode::Add, block, warp);
  const Uniformity u = analyze_uniformity(f.k);
  CHECK(u.value[block] == Level::Block);
  CHECK(u.value[thread] == Level::Thread);
  CHECK(u.value[warp] == Level::Warp);
  CHECK(u.value[lane] == Level::Thread);
  CHECK(u.value[global] == Level::Thread);
  CHECK(u.value[sum] == Level::Warp);
  for (const ValueId v : {dim, grid, size, p, c}) CHECK(u.value[v] == Level::Grid);
}

TEST_CASE("a declared block shape makes some thread ids more uniform") {
  struct Row {
    std::array<std::uint32_t, 3> block;
    std::array<Level, 3> thread, global;
    Level warp;
  };
  const Level G = Level::Grid, B = Level::Block, W = Level::Warp, T = Level::Thread;
  const Row rows[] = {
      {{64, 1, 1}, {T, G, G}, {T, B, B}, W}, {{32, 4, 1}, {T, W, G}, {T, W, B}, W}, {{16, 2, 4}, {T, T, W}, {T, T, W}, W},
      {{16, 3, 4}, {T, T, T}, {T, T, T}, W}, {{1, 32, 2}, {G, T, W}, {B, T, W}, W}, {{1, 1, 64}, {G, G, T}, {B, B, T}, W},
      {{32, 1, 1}, {T, G, G}, {T, B, B}, G}, {{33, 1, 1}, {T, G, G}, {T, B, B}, W}, {{1, 1, 1}, {G, G, G}, {B, B, B}, G},
      {{48, 2, 2}, {T, T, W}, {T, T, W}, W},
  };
  for (const Row& row : rows) {
    Fixture f;
    f.k.block_size = row.block;
    CAPTURE(row.block[0]);
    CAPTURE(row.block[1]);
    for (unsigned axis = 0; axis < 3; ++axis) {
      CAPTURE(axis);
      CHECK(f.of(f.b.query(Opcode::ThreadId, axis)) == row.thread[axis]);
      CHECK(f.of(f.b.query(Opcode::GlobalId, axis)) == row.global[axis]);
    }
    CHECK(f.of(f.b.query(Opcode::WarpId)) == row.warp);
  }
}

TEST_CASE("a load is as uniform as its address only where no thread can write the buffer") {
  enum class Touch { Nothing, Store, Atomic, StoreToAlias, StoreToOther };
  for (const Touch touch : {Touch::Nothing, Touch::Store, Touch::Atomic, Touch::StoreToAlias, Touch::StoreToOther}) {
    CAPTURE(static_cast<int>(touch));
    Fixture f;
    const std::uint32_t x = f.b.buffer("x", Type::U32, 1, Access::InOut), y = f.b.buffer("y", Type::U32, 1, Access::InOut);
    const ValueId zero = f.b.const_u32(0), block = f.b.query(Opcode::BlockId), thread = f.b.query(Opcode::ThreadId);
    const ValueId at_zero = f.b.load(x, {zero}), at_block = f.b.load(x, {block}), at_thread = f.b.load(x, {thread});
    if (touch == Touch::Store) f.b.store(x, {thread}, zero);
    if (touch == Touch::Atomic) f.b.atomic(Opcode::AtomicAdd, x, {thread}, zero);
    if (touch == Touch::StoreToAlias || touch == Touch::StoreToOther) f.b.store(y, {thread}, zero);
    if (touch == Touch::StoreToAlias) f.k.in_place.push_back({1, 0});
    const bool stable = touch == Touch::Nothing || touch == Touch::StoreToOther;
    const Uniformity u = analyze_uniformity(f.k);
    CHECK(u.value[at_zero] == (stable ? Level::Grid : Level::Thread));
    CHECK(u.value[at_block] == (stable ? Level::Block : Level::Thread));
    CHECK(u.value[at_thread] == Level::Thread);
  }
}

TEST_CASE("loads of shared and local memory and results of atomics differ per thread") {
  Fixture f;
  const std::uint32_t s = f.b.shared("s", Type::U32, {4}), l = f.b.local("l", Type::U32, {4}),
                      x = f.b.buffer("x", Type::U32, 1, Access::InOut);
  const ValueId zero = f.b.const_u32(0);
  CHECK(f.of(f.b.load(s, {zero})) == Level::Thread);
  CHECK(f.of(f.b.load(l, {zero})) == Level::Thread);
  CHECK(f.of(f.b.atomic(Opcode::AtomicAdd, x, {zero}, zero)) == Level::Thread);
}

TEST_CASE("block and warp operations give the uniformity they are for") {
  Fixture f;
  const ValueId c = f.lane_cond(), lane = f.b.query(Opcode::LaneId);
  CHECK(f.of(f.b.block_vote(Opcode::BarrierAny, c)) == Level::Block);
  CHECK(f.of(f.b.block_vote(Opcode::BarrierCount, c)) == Level::Block);
  CHECK(f.of(f.b.block_uniform(lane)) == Level::Block);
  CHECK(f.of(f.b.warp_vote(Opcode::VoteAll, c)) == Level::Warp);
  CHECK(f.of(f.b.warp_vote(Opcode::Ballot, c)) == Level::Warp);
  CHECK(f.of(f.b.warp_combine(Opcode::WarpReduce, Combine::Add, lane)) == Level::Warp);
  CHECK(f.of(f.b.warp_combine(Opcode::WarpScan, Combine::Add, lane)) == Level::Thread);
  CHECK(f.of(f.b.shuffle(Opcode::ShuffleXor, lane, f.b.const_u32(1))) == Level::Thread);
}

TEST_CASE("a slot is as uniform as what is set and as the control under which it is set") {
  struct Row {
    int control;  // 0: root, 1: under a block condition, 2: under a warp condition, 3: under a lane condition
    bool lane_value;
    Level expected;
  };
  const Row rows[] = {{0, false, Level::Grid},   {1, false, Level::Block}, {2, false, Level::Warp},
                      {3, false, Level::Thread}, {0, true, Level::Thread}, {1, true, Level::Thread}};
  for (const Row& row : rows) {
    CAPTURE(row.control);
    CAPTURE(row.lane_value);
    Fixture f;
    const std::uint32_t s = f.b.slot("s", Type::U32);
    const ValueId v = row.lane_value ? f.b.query(Opcode::LaneId) : f.b.const_u32(3);
    if (row.control == 0) {
      f.b.set(s, v);
    } else {
      const ValueId c = row.control == 1 ? f.block_cond() : row.control == 2 ? f.warp_cond() : f.lane_cond();
      const OpId branch = f.b.if_(c);
      f.b.set_region(f.k.op(branch).regions[1]);
      f.b.set(s, v);
      f.b.set_region(0);
    }
    CHECK(f.of(f.b.get(s)) == row.expected);
    CHECK(f.slot_level(s) == row.expected);
  }
}

TEST_CASE("a slot set late in a loop is seen by a get early in it") {
  Fixture f;
  const std::uint32_t s = f.b.slot("s", Type::U32), t = f.b.slot("t", Type::U32);
  const OpId loop = f.b.for_(f.b.const_u32(0), f.b.const_u32(4), f.b.const_u32(1));
  f.b.set_region(f.k.op(loop).regions[0]);
  f.b.set(t, f.b.get(s));
  f.b.set(s, f.b.query(Opcode::LaneId));
  CHECK(f.of(loop) == Level::Grid);
  CHECK(f.slot_level(t) == Level::Thread);
  CHECK(f.region_level(f.k.op(loop).regions[0]) == Level::Grid);
}

TEST_CASE("regions are as uniform as the conditions they stand under") {
  Fixture f;
  const OpId outer = f.b.if_(f.block_cond());
  f.b.set_region(f.k.op(outer).regions[0]);
  const OpId inner = f.b.if_(f.lane_cond());
  f.b.set_region(f.k.op(inner).regions[1]);
  const OpId innermost = f.b.if_(f.b.const_bool(true));
  f.b.set_region(0);
  const OpId sw = f.b.switch_(f.b.query(Opcode::WarpId), {1, 2});
  CHECK(f.region_level(0) == Level::Grid);
  for (int r = 0; r < 2; ++r) {
    CHECK(f.region_level(f.k.op(outer).regions[r]) == Level::Block);
    CHECK(f.region_level(f.k.op(inner).regions[r]) == Level::Thread);
    CHECK(f.region_level(f.k.op(innermost).regions[r]) == Level::Thread);
  }
  for (int r = 0; r < 3; ++r) CHECK(f.region_level(f.k.op(sw).regions[r]) == Level::Warp);
}

TEST_CASE("a for loop is as uniform as its bounds") {
  Fixture f;
  const ValueId zero = f.b.const_u32(0), one = f.b.const_u32(1), lane = f.b.query(Opcode::LaneId), block = f.b.query(Opcode::BlockId);
  const OpId by_lane = f.b.for_(lane, f.b.const_u32(64), one), by_block = f.b.for_(zero, block, one);
  CHECK(f.of(by_lane) == Level::Thread);
  CHECK(f.of(by_block) == Level::Block);
  CHECK(f.region_level(f.k.op(by_lane).regions[0]) == Level::Thread);
  CHECK(f.region_level(f.k.op(by_block).regions[0]) == Level::Block);
}

TEST_CASE("a while loop is as uniform as its condition, in both regions") {
  for (const bool divergent : {false, true}) {
    CAPTURE(divergent);
    Fixture f;
    const std::uint32_t s = f.b.slot("s", Type::U32);
    const OpId loop = f.b.while_();
    f.b.set_region(f.k.op(loop).regions[0]);
    f.b.set(s, f.b.const_u32(1));
    f.b.yield(divergent ? f.lane_cond() : f.block_cond());
    const Level expected = divergent ? Level::Thread : Level::Block;
    CHECK(f.region_level(f.k.op(loop).regions[0]) == expected);
    CHECK(f.region_level(f.k.op(loop).regions[1]) == expected);
    CHECK(f.slot_level(s) == expected);  // the last time round, only those still in the loop set it
  }
}

TEST_CASE("break and continue under a divergent condition make their own loop divergent, also before them, and no outer loop") {
  for (const Opcode leave : {Opcode::Break, Opcode::Continue, Opcode::Return}) {
    CAPTURE(static_cast<int>(leave));
    Fixture f;
    const std::uint32_t s = f.b.slot("s", Type::U32);
    const ValueId zero = f.b.const_u32(0), one = f.b.const_u32(1), ten = f.b.const_u32(10);
    const OpId outer = f.b.for_(zero, ten, one);
    f.b.set_region(f.k.op(outer).regions[0]);
    const OpId loop = f.b.for_(zero, ten, one);
    f.b.set_region(f.k.op(loop).regions[0]);
    const OpId early = f.b.if_(f.b.const_bool(true));
    f.b.set(s, f.b.const_u32(5));  // a uniform value, but threads leave the loop at different times
    const OpId exit = f.b.if_(f.lane_cond());
    f.b.set_region(f.k.op(exit).regions[0]);
    f.b.leave(leave);
    const bool counts = leave != Opcode::Return;
    const Level expected = counts ? Level::Thread : Level::Grid;
    CHECK(f.region_level(f.k.op(loop).regions[0]) == expected);
    CHECK(f.region_level(f.k.op(early).regions[0]) == expected);
    CHECK(f.slot_level(s) == expected);
    CHECK(f.region_level(f.k.op(outer).regions[0]) == Level::Grid);
    CHECK(f.region_level(f.k.op(exit).regions[0]) == Level::Thread);
  }
}

TEST_CASE("a break decided by a warp vote keeps the loop warp-uniform") {
  Fixture f;
  const OpId loop = f.b.while_();
  f.b.set_region(f.k.op(loop).regions[0]);
  f.b.yield(f.b.const_bool(true));
  f.b.set_region(f.k.op(loop).regions[1]);
  const OpId exit = f.b.if_(f.warp_cond());
  f.b.set_region(f.k.op(exit).regions[0]);
  f.b.leave(Opcode::Break);
  CHECK(f.region_level(f.k.op(loop).regions[0]) == Level::Warp);
  CHECK(f.region_level(f.k.op(loop).regions[1]) == Level::Warp);
}

TEST_CASE("code after a divergent return is still uniform") {
  Fixture f;
  const OpId exit = f.b.if_(f.lane_cond());
  f.b.set_region(f.k.op(exit).regions[0]);
  f.b.leave(Opcode::Return);
  f.b.set_region(0);
  const std::uint32_t s = f.b.slot("s", Type::U32);
  f.b.set(s, f.b.const_u32(1));
  CHECK(f.region_level(0) == Level::Grid);
  CHECK(f.slot_level(s) == Level::Grid);
}
