// Warp operations, barriers with an exchange through shared memory, atomics that many threads share. Every result goes into the trace.
#include "fuzz/generator_impl.h"

namespace kiln::fuzz {

using ir::Combine;
using ir::kNone;
using ir::Opcode;
using ir::Type;
using ir::ValueId;

// The lane or the distance of a shuffle: mostly where something changes (nothing moves, all moves out, the width of a partial warp).
ValueId Generator::shuffle_lane() {
  const std::uint32_t width = threads_ % 32;
  switch (r_.below(8)) {
    case 0:
    case 1: return b_.const_u32(r_.pick(std::vector<std::uint32_t>{0, 1, 16, 31, 32, 33, 63, 0xffffffff}));
    case 2: return b_.const_u32(width + r_.below(3) - 1);
    case 3:
    case 4: return b_.const_u32(1 + r_.below(31));
    case 5: return value(Type::U32, 2).id;
    case 6: {
      const ValueId lane = b_.query(Opcode::LaneId);
      return r_.chance(50) ? b_.binary(Opcode::Sub, b_.const_u32(r_.chance(50) ? 31 : width), lane)
                           : b_.binary(Opcode::Add, lane, b_.const_u32(r_.below(3)));
    }
    default: return b_.binary(Opcode::And, varying(Type::U32).id, b_.const_u32(r_.chance(70) ? 31 : 63));
  }
}

void Generator::warp_statement() {
  static const std::vector<Opcode> shuffles{Opcode::ShuffleIdx, Opcode::ShuffleUp, Opcode::ShuffleDown, Opcode::ShuffleXor};
  static const std::vector<Opcode> votes{Opcode::VoteAny, Opcode::VoteAll, Opcode::Ballot, Opcode::Ballot};
  static const std::vector<Opcode> kinds{Opcode::WarpReduce, Opcode::WarpScan, Opcode::WarpScanExclusive};
  for (std::uint32_t n = 1 + r_.below(3); n > 0; --n) {
    ValueId result = kNone;
    switch (r_.below(6)) {
      case 0:
      case 1:
      case 2: {
        const Type t = any_computed();
        const ValueId v = r_.chance(85) ? varying(t).id : value(t, 2).id;
        result = b_.shuffle(r_.pick(shuffles), v, shuffle_lane());
        break;
      }
      case 3: result = b_.warp_vote(r_.pick(votes), r_.chance(80) ? divergent_bool() : value(Type::Bool, 1).id); break;
      default: {
        auto how = static_cast<Combine>(r_.below(7));
        const bool bits = how == Combine::And || how == Combine::Or || how == Combine::Xor;
        const Type t = bits ? (r_.chance(20) ? Type::Bool : any_integer()) : r_.chance(50) ? any_integer() : any_float();
        if (how == Combine::Mul && ir::is_half(t)) how = Combine::Add;
        result = b_.warp_combine(r_.pick(kinds), how, r_.chance(85) ? varying(t).id : value(t, 1).id);
      }
    }
    keep(result, false);
    fold(result);
  }
  if (r_.chance(10)) b_.warp_sync();
}

void Generator::barrier_statement() {
  std::vector<Value> before;  // live across the barrier
  for (std::uint32_t i = 0; i < 2 && !scope_.empty(); ++i) before.push_back(r_.pick(scope_));
  before.push_back(varying(r_.pick(own_).type));
  // Asked before, and gone by behind: what it compares has no use there, and so is seldom kept.
  const ValueId asked = r_.chance(30) ? (r_.chance(50) ? lanes_against_uniform() : new_divergent_bool()) : kNone;
  const std::uint32_t kind = r_.below(6);
  if (kind == 0) {
    b_.barrier();
  } else if (kind == 1) {
    static const std::vector<Opcode> votes{Opcode::BarrierAny, Opcode::BarrierAll, Opcode::BarrierCount};
    fold(keep(b_.block_vote(r_.pick(votes), divergent_bool()), true).id);
  } else if (kind == 2) {
    fold(keep(b_.block_uniform(value(any_computed(), 2, true).id), true).id);
  } else if (exchange_.mem == kNone) {
    b_.barrier();
  } else {
    // One round of talk through shared memory; cells that nobody wrote since the start are never read.
    ValueId to = thread_;
    if (faults_ && r_.chance(25)) {
      case_.may_fault = true;
      to = b_.select(divergent_bool(), thread_, extent_minus(exchange_, 0, Type::U32, 0));
    }
    b_.store(exchange_.mem, {to}, varying(exchange_.type).id);
    b_.barrier();
    if (r_.chance(25)) adjacent_loads(exchange_);
    else fold(keep(b_.load(exchange_.mem, {index_into(exchange_, 0, r_.chance(15))}), false).id);
    b_.barrier();
  }
  for (const Value& v : before) fold(v.id);
  if (asked != kNone) in_region(b_.if_(asked), 0, [&] { assign(); });
}

void Generator::atomic_statement() {
  const auto& list = !shared_accumulators_.empty() ? shared_accumulators_ : accumulators_;
  if (list.empty()) return own_statement();
  const Accumulator& a = r_.pick(list);
  ValueId cell = b_.binary(Opcode::And, value(Type::U32, 1).id, b_.const_u32(7));
  if (faults_ && r_.chance(30)) {
    case_.may_fault = true;
    cell = b_.binary(Opcode::And, varying(Type::U32).id, b_.const_u32(15));
  }
  Opcode kind = a.kind;
  if (kind == Opcode::AtomicAdd && ir::is_integer(a.type) && r_.chance(30)) kind = Opcode::AtomicSub;
  const ValueId v = a.exact ? b_.cast(a.type, b_.binary(Opcode::And, varying(Type::U32).id, b_.const_u32(15))) : value(a.type, 2).id;
  b_.atomic(kind, a.mem, {cell}, v);
}

}  // namespace kiln::fuzz
