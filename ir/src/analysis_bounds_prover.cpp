// Nodes: which values are one, and what is known of a value for any facts.
#include "analysis_bounds_prover.h"

#include <algorithm>

#include "analysis_bounds_numbers.h"

namespace kiln::ir {

using Num = Prover::Num;

namespace {

bool commutes(Opcode c) {
  return c == Opcode::Add || c == Opcode::Mul || c == Opcode::And || c == Opcode::Or || c == Opcode::Xor || c == Opcode::Min ||
         c == Opcode::Max || c == Opcode::Eq || c == Opcode::Ne;
}

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h = (h ^ v) * 0x9e3779b97f4a7c15u;
  return h ^ (h >> 29);
}

}  // namespace

Prover::Prover(const Kernel& kernel) : k_(kernel) {
  const std::size_t expected = kernel.ops.size() + 16;
  nodes_.reserve(expected);
  std::size_t size = 64;
  while (size < expected) size *= 2;
  table_.assign(size, kNone);
  zero_ = constant(0);
}

// --- nodes -------------------------------------------------------------------------------------------------------------

Prover::Node Prover::add(const Data& data) {
  nodes_.push_back(data);
  chain_.push_back(kNone);
  tags_.push_back(0);
  busy_.push_back(0);
  truth_.push_back(kUnknown);
  return static_cast<Node>(nodes_.size() - 1);
}

Prover::Node Prover::intern(std::uint64_t hash, const Data& d, std::uint64_t tag, bool& made) {
  Node& head = table_[hash & (table_.size() - 1)];
  for (Node n = head; n != kNone; n = chain_[n]) {
    const Data& o = nodes_[n];
    if (o.kind == d.kind && o.code == d.code && o.type == d.type && o.operand == d.operand && tags_[n] == tag &&
        (d.kind != Kind::Constant || o.lo == d.lo)) {
      made = false;
      return n;
    }
  }
  const Node n = add(d);
  tags_[n] = tag;
  chain_[n] = head;
  head = n;
  made = true;
  return n;
}

Prover::Node Prover::constant(Num value) {
  Data d{.kind = Kind::Constant};
  d.lo = d.hi = value;
  bool made;
  return intern(mix(1, static_cast<std::uint64_t>(value)), d, 0, made);
}

Prover::Range Prover::range_of(Type type) { return {type_min(type), type_max(type)}; }

Prover::Node Prover::opaque(Type type) { return opaque(type, countable(type) ? range_of(type) : Range{}); }

Prover::Node Prover::opaque(Type type, Range range) {
  Data d{.kind = Kind::Opaque, .type = type};
  d.lo = range.lo;
  d.hi = range.hi;
  return add(d);
}

Prover::Node Prover::extent(std::uint32_t mem, unsigned dimension) {
  const Mem& m = k_.mems[mem];
  if (m.space != Space::Global && !m.dynamic) return constant(m.extents[dimension]);
  Data d{.kind = Kind::Operation, .code = Opcode::Extent, .type = Type::U64};
  d.hi = type_max(Type::U64);
  bool made;
  return intern(mix(2, mem * 8 + dimension), d, mem * 8 + dimension, made);
}

Prover::Node Prover::choice(Type type, Node cond, Node a, Node b) {
  if (a == b) return a;
  Data d{.kind = Kind::Operation, .code = Opcode::Select, .type = type, .operand = {cond, a, b}};
  if (countable(type)) static_range(d);
  bool made;
  return intern(mix(mix(mix(3, cond), a), b), d, 0, made);
}

// lo <= i < hi: a loop never counts past its end, whatever the step (ops.def).
Prover::Node Prover::induction(Type type, Node lo, Node hi, Node step) {
  Data d{.kind = Kind::Induction, .code = Opcode::For, .type = type, .operand = {lo, hi, kNone}};
  d.lo = std::max(type_min(type), at(lo).lo);
  d.hi = std::max(std::min(type_max(type), at(hi).hi - 1), d.lo);
  // From a known start by a known step: the last value on that grid, so that i + 1 is inside in a loop by twos.
  const Data &first = at(lo), &by = at(step);
  if (first.lo == first.hi && by.lo == by.hi && by.lo > 0) d.hi = first.lo + (d.hi - first.lo) / by.lo * by.lo;
  return add(d);
}

Prover::Node Prover::operation(const Op& op, Type operand_type, const std::vector<Node>& operands) {
  Data d{.kind = Kind::Operation, .code = op.code, .axis = op.attr, .type = op.type};
  std::uint64_t tag = op.imm | std::uint64_t{op.attr} << 32;
  const std::uint64_t threads =
      k_.has_block_size() ? std::uint64_t{k_.block_size[0]} * k_.block_size[1] * k_.block_size[2] : k_.max_threads;
  const bool narrow = bit_width(op.type) <= 32;
  const Num wide_max = type_max(narrow ? Type::U32 : Type::U64);
  switch (op.code) {
    case Opcode::Const:
      if (!countable(op.type)) break;
      return constant(is_signed(op.type) ? Num{sign_extend(op.type, op.imm)} : Num{op.imm});
    case Opcode::Extent: {
      const Node n = extent(op.index, op.attr);
      if (narrow) nodes_[n].hi = std::min(nodes_[n].hi, type_max(Type::U32));  // the launch refuses a larger one
      return n;
    }
    case Opcode::Size:
      if (k_.mems[op.index].rank == 1) {
        Op same = op;
        same.code = Opcode::Extent;
        same.attr = 0;
        return operation(same, operand_type, operands);
      }
      tag = op.index;
      d.type = Type::U64;
      d.hi = type_max(Type::U64);
      break;
    case Opcode::Param:
      tag = op.index;
      if (!countable(op.type)) break;
      d.lo = type_min(op.type);
      d.hi = type_max(op.type);
      break;
    case Opcode::Stride:
      tag = std::uint64_t{op.index} * 8 + op.attr;
      d.hi = type_max(Type::U64);
      break;
    case Opcode::GlobalId:
      d.type = Type::U64;
      d.hi = type_max(Type::U64);
      break;
    case Opcode::BlockDim:
      if (k_.has_block_size()) return constant(k_.block_size[op.attr]);
      d.lo = 1;
      d.hi = k_.max_threads != 0 ? Num{k_.max_threads} : wide_max;
      break;
    case Opcode::GridDim:
      d.lo = 1;
      d.hi = wide_max;
      break;
    case Opcode::BlockId: d.hi = wide_max - 1; break;
    case Opcode::ThreadId:
      if (k_.has_block_size()) {
        d.hi = k_.block_size[op.attr] - 1;
      } else {
        d.hi = (k_.max_threads != 0 ? Num{k_.max_threads} : wide_max) - 1;
      }
      break;
    case Opcode::LaneId: d.hi = threads != 0 ? std::min<Num>(31, Num{threads} - 1) : Num{31}; break;
    case Opcode::WarpId: d.hi = threads != 0 ? (Num{threads} + 31) / 32 - 1 : type_max(Type::U32) / 32; break;
    case Opcode::Cast:
    case Opcode::BitCast:
      // The same value in another type is the same node; what is left as a Cast cuts bits off or changes the sign.
      if (is_integer(op.type) && countable(operand_type)) {
        if (at(operands[0]).lo >= type_min(op.type) && at(operands[0]).hi <= type_max(op.type)) return operands[0];
        d.code = Opcode::Cast;
      } else {
        d.code = Opcode::BitCast;  // from or to a float or to a bool: nothing is known about the result
        tag = op.code == Opcode::Cast ? 1 : 2;
      }
      break;
    default: break;
  }
  for (std::size_t i = 0; i < operands.size() && i < 3; ++i) d.operand[i] = operands[i];
  if (commutes(op.code) && d.operand[0] > d.operand[1]) std::swap(d.operand[0], d.operand[1]);
  if (!operands.empty() && countable(op.type)) {
    if (countable(operand_type) || op.code == Opcode::Select) {
      static_range(d);
    } else {
      d.lo = type_min(op.type);  // out of floats: any value of the type
      d.hi = type_max(op.type);
    }
  }
  if (!is_pure(op.code)) return add(d);  // a vote: another time, another answer
  // Comparisons of floats say nothing about integers; a type of their own keeps them from being read as such.
  if (info(op.code).form == Form::Compare) d.type = operand_type;
  std::uint64_t h = mix(mix(4, static_cast<std::uint64_t>(d.code) << 8 | static_cast<std::uint64_t>(d.type)), tag);
  for (const Node n : d.operand) h = mix(h, n);
  bool made;
  const Node n = intern(h, d, tag, made);
  if ((op.code == Opcode::GlobalId || op.code == Opcode::Size) && narrow) nodes_[n].hi = type_max(Type::U32);  // else the launch is refused
  if (op.code == Opcode::GridDim) grid_dim_[op.attr] = n;
  if (op.code == Opcode::BlockDim) block_dim_[op.attr] = n;
  return n;
}

// The range that follows from the ranges of the operands alone, for any facts.
void Prover::static_range(Data& d) const {
  const Type t = d.type;
  d.lo = type_min(t);
  d.hi = type_max(t);
  const Data& a = at(d.operand[0]);
  const Data& b = d.operand[1] != kNone ? at(d.operand[1]) : a;
  const auto set = [&](Num lo, Num hi) {
    if (lo < type_min(t) || hi > type_max(t)) return;
    d.lo = lo;
    d.hi = hi;
  };
  switch (d.code) {
    case Opcode::Add: set(a.lo + b.lo, a.hi + b.hi); break;
    case Opcode::Sub: set(a.lo - b.hi, a.hi - b.lo); break;
    case Opcode::Mul:
      if (a.lo >= 0 && b.lo >= 0 && a.hi < (Num{1} << 62) && b.hi < (Num{1} << 62)) set(a.lo * b.lo, a.hi * b.hi);
      break;
    case Opcode::Div:
      if (a.lo >= 0 && b.lo >= 1) set(a.lo / b.hi, a.hi / b.lo);
      break;
    case Opcode::Rem:
      if (b.lo >= 1) set(a.lo >= 0 ? Num{0} : -(b.hi - 1), a.lo >= 0 ? std::min(a.hi, b.hi - 1) : b.hi - 1);
      else if (a.lo >= 0) set(0, a.hi);
      break;
    case Opcode::Min: set(std::min(a.lo, b.lo), std::min(a.hi, b.hi)); break;
    case Opcode::Max: set(std::max(a.lo, b.lo), std::max(a.hi, b.hi)); break;
    case Opcode::And:
      if (a.lo >= 0 && b.lo >= 0) set(0, std::min(a.hi, b.hi));
      else if (b.lo >= 0) set(0, b.hi);
      else if (a.lo >= 0) set(0, a.hi);
      break;
    case Opcode::Or:
      if (a.lo >= 0 && b.lo >= 0) set(std::max(a.lo, b.lo), all_bits(std::max(a.hi, b.hi)));
      break;
    case Opcode::Xor:
      if (a.lo >= 0 && b.lo >= 0) set(0, all_bits(std::max(a.hi, b.hi)));
      break;
    case Opcode::Shl:
      if (a.lo >= 0 && a.hi < (Num{1} << 62) && b.lo >= 0 && b.hi < 62) set(a.lo << static_cast<int>(b.lo), a.hi << static_cast<int>(b.hi));
      break;
    case Opcode::Shr:
      if (a.lo >= 0 && b.lo >= 0 && b.hi < 64) set(a.lo >> static_cast<int>(b.hi), a.hi >> static_cast<int>(b.lo));
      else if (a.lo >= 0) set(0, a.hi);
      break;
    case Opcode::Neg:
      if (is_signed(t)) set(-a.hi, -a.lo);
      break;
    case Opcode::Abs:
      if (is_signed(t) && a.lo > type_min(t)) set(0, std::max(a.hi, -a.lo));
      else if (!is_signed(t)) set(a.lo, a.hi);
      break;
    case Opcode::Clz:
    case Opcode::Ctz:
    case Opcode::Popcount: set(0, bit_width(t)); break;
    case Opcode::Select: {
      const Data& c = at(d.operand[2]);
      set(std::min(b.lo, c.lo), std::max(b.hi, c.hi));
      break;
    }
    case Opcode::Cast:
      if (a.lo >= 0 && !is_signed(t)) d.hi = std::min(d.hi, a.hi);
      break;
    default: break;
  }
}

}  // namespace kiln::ir
