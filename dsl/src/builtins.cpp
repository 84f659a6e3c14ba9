#include "kiln/dsl/builtins.h"

#include "kiln/dsl/warp.h"

namespace kiln {
namespace {

template <class F>
dsl::Handle record(const dsl::Operand& a, F&& make) {
  dsl::Recorder& r = dsl::Recorder::current(a.where);
  return r.handle(make(r.at(a.where)));
}

dsl::Handle block_vote(ir::Opcode code, const dsl::Operand& c) {
  return record(c, [&](ir::Builder& b) { return b.block_vote(code, c.id); });
}
dsl::Handle warp_vote(ir::Opcode code, const dsl::Operand& c) {
  return record(c, [&](ir::Builder& b) { return b.warp_vote(code, c.id); });
}

}  // namespace

void barrier(dsl::Where w) { dsl::Recorder::current(w).at(w).barrier(); }
Val<bool> barrier_any(Use<bool> c) { return Val<bool>(block_vote(ir::Opcode::BarrierAny, c)); }
Val<bool> barrier_all(Use<bool> c) { return Val<bool>(block_vote(ir::Opcode::BarrierAll, c)); }
Val<u32> barrier_count(Use<bool> c) { return Val<u32>(block_vote(ir::Opcode::BarrierCount, c)); }

namespace warp {

Val<bool> any(Use<bool> c) { return Val<bool>(warp_vote(ir::Opcode::VoteAny, c)); }
Val<bool> all(Use<bool> c) { return Val<bool>(warp_vote(ir::Opcode::VoteAll, c)); }
Val<u32> ballot(Use<bool> c) { return Val<u32>(warp_vote(ir::Opcode::Ballot, c)); }

Val<bool> elect(dsl::Where w) {
  dsl::Recorder& r = dsl::Recorder::current(w);
  ir::Builder& b = r.at(w);
  const ir::ValueId active = b.warp_vote(ir::Opcode::Ballot, b.const_bool(true));
  const ir::ValueId lowest = b.unary(ir::Opcode::Ctz, active);
  return Val<bool>(r.handle(b.binary(ir::Opcode::Eq, lowest, b.query(ir::Opcode::LaneId))));
}

void sync(dsl::Where w) { dsl::Recorder::current(w).at(w).warp_sync(); }

namespace detail {
dsl::Handle combine(ir::Opcode code, ir::Combine how, const dsl::Operand& a) {
  return record(a, [&](ir::Builder& b) { return b.warp_combine(code, how, a.id); });
}
}  // namespace detail

}  // namespace warp

Val<u64> clock_cycles(dsl::Where w) { return Val<u64>(dsl::query(ir::Opcode::Clock, 0, ir::Type::U64, w)); }
Val<u64> global_time(dsl::Where w) { return Val<u64>(dsl::query(ir::Opcode::GlobalTime, 0, ir::Type::U64, w)); }

}  // namespace kiln
