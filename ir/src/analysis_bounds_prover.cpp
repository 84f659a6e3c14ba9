#include "analysis_bounds_prover.h"

#include <algorithm>

namespace kiln::ir {
namespace {

using Num = Prover::Num;
constexpr Num kInf = Prover::kInfinity;
constexpr int kDepth = 12;
constexpr unsigned kBudget = 400;

// Infinity stays infinity: "don't know" plus anything is "don't know".
Num plus(Num a, Num b) {
  if (a >= kInf || b >= kInf) return kInf;
  if (a <= -kInf || b <= -kInf) return -kInf;
  return a + b;
}

Num type_min(Type t) { return is_signed(t) ? -(Num{1} << (bit_width(t) - 1)) : Num{0}; }
Num type_max(Type t) {
  if (t == Type::Bool) return 1;
  return (Num{1} << (is_signed(t) ? bit_width(t) - 1 : bit_width(t))) - 1;
}
bool countable(Type t) { return is_integer(t) || is_bool(t); }

// The smallest 2^n - 1 not below a non-negative value.
Num all_bits(Num v) {
  Num m = 0;
  while (m < v) m = m * 2 + 1;
  return m;
}

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

// --- facts -------------------------------------------------------------------------------------------------------------

void Prover::undo(std::size_t mark) {
  while (log_.size() > mark) {
    if (log_.back().cond == kNone) {
      const Fact& f = facts_.back();
      nodes_[f.from].out = f.next_out;
      if (!f.through) nodes_[f.to].in = f.next_in;
      facts_.pop_back();
    } else {
      truth_[log_.back().cond] = kUnknown;
    }
    log_.pop_back();
  }
}

void Prover::edge(Node x, Node y, Num k, bool through) {
  facts_.push_back({x, y, k, at(x).out, at(y).in, through});
  nodes_[x].out = static_cast<std::uint32_t>(facts_.size() - 1);
  if (!through) nodes_[y].in = static_cast<std::uint32_t>(facts_.size() - 1);
  log_.push_back({kNone});
}

// x <= y + k. Constants are zero plus something, so that facts about numbers meet.
void Prover::fact(Node x, Node y, Num k) {
  if (at(x).kind == Kind::Constant) {
    k -= at(x).lo;
    x = zero_;
  }
  if (at(y).kind == Kind::Constant) {
    k += at(y).lo;
    y = zero_;
  }
  if (x == y) return;
  edge(x, y, k, false);
  link_operands(x, 3);
}

// A bound of x also bounds what x is made of: from i + 1 < n follows i < n - 1, once i + 1 is known not to wrap.
void Prover::link_operands(Node x, int depth) {
  const Data d = at(x);
  if (depth == 0 || d.kind != Kind::Operation) return;
  const int operands = d.code == Opcode::Cast ? 1 : d.code == Opcode::Add || d.code == Opcode::Max ? 2 : d.code == Opcode::Sub ? 1 : 0;
  for (int i = 0; i < operands; ++i) {
    if (at(d.operand[i]).kind == Kind::Constant) continue;
    edge(d.operand[i], x, 0, true);
    link_operands(d.operand[i], depth - 1);
  }
}

void Prover::assume_equal(Node a, Node b) {
  fact(a, b, 0);
  fact(b, a, 0);
}

bool Prover::known(Node cond, bool truth) const {
  if (at(cond).kind == Kind::Constant) return (at(cond).lo != 0) == truth;
  return truth_[cond] == (truth ? kTrue : kFalse);
}

// Whether `value` cannot be `truth` where `cond` is `cond_truth`.
bool Prover::impossible(Node value, bool truth, Node cond, bool cond_truth) const {
  if (value == cond) return truth != cond_truth;
  if (at(value).kind == Kind::Operation && at(value).code == Opcode::Not) return impossible(at(value).operand[0], !truth, cond, cond_truth);
  if (at(cond).kind == Kind::Operation && at(cond).code == Opcode::Not) return impossible(value, truth, at(cond).operand[0], !cond_truth);
  return known(value, !truth) || known(cond, !cond_truth);
}

// (cond ? a : b) is `truth`: when one side cannot be, the other one is taken.
void Prover::assume_case(Node cond, Node a, Node b, bool truth) {
  if (impossible(b, truth, cond, false)) {
    assume(cond, true);
    assume(a, truth);
  } else if (impossible(a, truth, cond, true)) {
    assume(cond, false);
    assume(b, truth);
  }
}

void Prover::assume(Node cond, bool truth) {
  const Data d = at(cond);
  if (d.kind == Kind::Constant || truth_[cond] != kUnknown) return;  // known; or the opposite is, and nothing gets here
  truth_[cond] = truth ? kTrue : kFalse;
  log_.push_back({cond});
  if (d.kind != Kind::Operation) return;
  Node a = d.operand[0], b = d.operand[1];
  Opcode code = d.code;
  if (info(code).form == Form::Compare) {
    if (!is_integer(d.type)) return;
    if (!truth) {
      switch (code) {
        case Opcode::Eq: code = Opcode::Ne; break;
        case Opcode::Ne: code = Opcode::Eq; break;
        case Opcode::Lt: code = Opcode::Ge; break;
        case Opcode::Le: code = Opcode::Gt; break;
        case Opcode::Gt: code = Opcode::Le; break;
        default: code = Opcode::Lt; break;
      }
    }
    switch (code) {
      case Opcode::Lt: return fact(a, b, -1);
      case Opcode::Le: return fact(a, b, 0);
      case Opcode::Gt: return fact(b, a, -1);
      case Opcode::Ge: return fact(b, a, 0);
      case Opcode::Eq: return assume_equal(a, b);
      default: break;
    }
    // Different, and already known not to be above: below.
    if (busy_depth_ == 0) budget_ = kBudget;
    for (int side = 0; side < 2; ++side, std::swap(a, b)) {
      if (upper(a, kDepth) <= lower(b, kDepth) || at_most(a, b, kDepth) <= 0) return fact(a, b, -1);
    }
    return;
  }
  switch (code) {
    case Opcode::Not: return assume(a, !truth);
    case Opcode::And:
      if (d.type == Type::Bool && truth) {
        assume(a, true);
        assume(b, true);
      }
      return;
    case Opcode::Or:
      if (d.type == Type::Bool && !truth) {
        assume(a, false);
        assume(b, false);
      }
      return;
    case Opcode::Select:
      if (d.type == Type::Bool) assume_case(a, b, d.operand[2], truth);
      return;
    case Opcode::VoteAll:
    case Opcode::BarrierAll:
      if (truth) assume(a, true);
      return;
    case Opcode::VoteAny:
    case Opcode::BarrierAny:
      if (!truth) assume(a, false);
      return;
    default: return;
  }
}

// --- questions ---------------------------------------------------------------------------------------------------------

bool Prover::in_range(Node index, std::uint32_t mem, unsigned dimension) {
  const Node bound = extent(mem, dimension);
  budget_ = kBudget;
  if (lower(index, kDepth) < 0) return false;
  budget_ = kBudget;
  return at_most(index, bound, kDepth) <= -1;
}

// Marks a question as under way for its lifetime: asking it again on the way to its answer tells nothing.
class Prover::Guard {
 public:
  Guard(std::uint8_t& flags, std::uint8_t bit) : flags_(&flags), bit_(bit), free_((flags & bit) == 0) { flags |= bit; }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;
  ~Guard() {
    if (free_) *flags_ &= static_cast<std::uint8_t>(~bit_);
  }
  bool free() const { return free_; }

 private:
  std::uint8_t* flags_;
  std::uint8_t bit_;
  bool free_;
};

Num Prover::upper(Node x, int depth) {
  Num best = at(x).hi;
  if (at(x).kind == Kind::Constant || depth <= 0 || !spend()) return best;
  const Guard guard(busy_[x], 1);
  if (!guard.free()) return best;
  for (std::uint32_t f = at(x).out; f != kNone; f = facts_[f].next_out) {
    const Fact fact = facts_[f];
    const Num k = fact.through ? through(x, fact.to, depth - 1) : fact.k;
    if (k < kInf) best = std::min(best, plus(upper(fact.to, depth - 1), k));
  }
  if (at(x).kind != Kind::Opaque) best = std::min(best, upper_of_operation(x, depth - 1));
  return best;
}

Num Prover::lower(Node x, int depth) {
  Num best = at(x).lo;
  if (at(x).kind == Kind::Constant || depth <= 0 || !spend()) return best;
  const Guard guard(busy_[x], 2);
  if (!guard.free()) return best;
  for (std::uint32_t f = at(x).in; f != kNone; f = facts_[f].next_in) {
    const Fact fact = facts_[f];
    best = std::max(best, plus(lower(fact.from, depth - 1), -fact.k));
  }
  if (at(x).kind != Kind::Opaque) best = std::max(best, lower_of_operation(x, depth - 1));
  return best;
}

// The mathematical result of an add, sub or narrowing cast fits its type.
bool Prover::exact(Node x, int depth) {
  const Data d = at(x);
  const Node a = d.operand[0], b = d.operand[1];
  const Num min = type_min(d.type), max = type_max(d.type);
  switch (d.code) {
    case Opcode::Add: return upper(a, depth) + upper(b, depth) <= max && lower(a, depth) + lower(b, depth) >= min;
    case Opcode::Sub:
      if (upper(a, depth) - lower(b, depth) > max) return false;
      if (lower(a, depth) - upper(b, depth) >= min) return true;
      return min <= 0 && at_most(b, a, depth) <= 0;
    case Opcode::Cast: return lower(a, depth) >= min && upper(a, depth) <= max;
    default: return false;
  }
}

Num Prover::upper_of_operation(Node x, int depth) {
  const Data d = at(x);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return plus(upper(b, depth), -1);
  if (a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return kInf;
  switch (d.code) {
    case Opcode::Add: return exact(x, depth) ? upper(a, depth) + upper(b, depth) : kInf;
    case Opcode::Sub:
      if (!exact(x, depth)) return kInf;
      return std::min(upper(a, depth) - lower(b, depth), at_most(a, b, depth));
    case Opcode::Mul: {
      if (lower(a, depth) < 0 || lower(b, depth) < 0) return kInf;
      const Num u = upper(a, depth), v = upper(b, depth);
      if (u >= (Num{1} << 62) || v >= (Num{1} << 62) || u * v > type_max(d.type)) return kInf;
      return u * v;
    }
    case Opcode::Div: {
      const Num divisor = lower(b, depth);
      return divisor >= 1 && lower(a, depth) >= 0 ? upper(a, depth) / divisor : kInf;
    }
    case Opcode::Rem: {
      Num best = std::max<Num>(upper(a, depth), 0);
      if (lower(b, depth) >= 1) best = std::min(best, upper(b, depth) - 1);
      return best;
    }
    case Opcode::And: {
      Num best = kInf;
      if (lower(a, depth) >= 0) best = upper(a, depth);
      if (lower(b, depth) >= 0) best = std::min(best, upper(b, depth));
      return best;
    }
    case Opcode::Or:
    case Opcode::Xor:
      if (lower(a, depth) < 0 || lower(b, depth) < 0) return kInf;
      return all_bits(std::max(upper(a, depth), upper(b, depth)));
    case Opcode::Shl: {
      const Num u = upper(a, depth), count = upper(b, depth);
      if (lower(a, depth) < 0 || lower(b, depth) < 0 || u >= (Num{1} << 62) || count >= 62) return kInf;
      const Num shifted = u << static_cast<int>(count);
      return shifted <= type_max(d.type) ? shifted : kInf;
    }
    case Opcode::Shr: {
      if (lower(a, depth) < 0) return kInf;
      const Num u = upper(a, depth), count = lower(b, depth);
      return count >= 0 && count < 64 ? u >> static_cast<int>(count) : u;
    }
    case Opcode::Min: return std::min(upper(a, depth), upper(b, depth));
    case Opcode::Max: return std::max(upper(a, depth), upper(b, depth));
    case Opcode::Cast: {
      if (exact(x, depth)) return upper(a, depth);
      // Cutting bits off a non-negative value, or reading an unsigned one as signed, only ever makes it smaller.
      return lower(a, depth) >= 0 ? upper(a, depth) : kInf;
    }
    case Opcode::Select: {
      const std::size_t m = mark();
      ++busy_depth_;
      assume(a, true);
      const Num first = upper(b, depth);
      undo(m);
      assume(a, false);
      const Num second = upper(d.operand[2], depth);
      undo(m);
      --busy_depth_;
      return std::max(first, second);
    }
    default: return kInf;
  }
}

Num Prover::lower_of_operation(Node x, int depth) {
  const Data d = at(x);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return lower(a, depth);
  if (a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return -kInf;
  switch (d.code) {
    case Opcode::Add: return exact(x, depth) ? lower(a, depth) + lower(b, depth) : -kInf;
    case Opcode::Sub:
      if (!exact(x, depth)) return -kInf;
      return std::max(lower(a, depth) - upper(b, depth), -at_most(b, a, depth));
    case Opcode::Mul: {
      const Num u = upper(a, depth), v = upper(b, depth), l = lower(a, depth), m = lower(b, depth);
      if (l < 0 || m < 0 || u >= (Num{1} << 62) || v >= (Num{1} << 62) || u * v > type_max(d.type)) return -kInf;
      return l * m;
    }
    case Opcode::Div: {
      const Num divisor = upper(b, depth);
      return lower(a, depth) >= 0 && lower(b, depth) >= 1 ? lower(a, depth) / divisor : -kInf;
    }
    case Opcode::Rem:
      if (lower(a, depth) >= 0) return 0;
      return -kInf;
    case Opcode::And: return lower(a, depth) >= 0 || lower(b, depth) >= 0 ? Num{0} : -kInf;
    case Opcode::Shr: return lower(a, depth) >= 0 ? Num{0} : -kInf;
    case Opcode::Min: return std::min(lower(a, depth), lower(b, depth));
    case Opcode::Max: return std::max(lower(a, depth), lower(b, depth));
    case Opcode::Cast: return exact(x, depth) ? lower(a, depth) : -kInf;
    case Opcode::Select: {
      const std::size_t m = mark();
      ++busy_depth_;
      assume(a, true);
      const Num first = lower(b, depth);
      undo(m);
      assume(a, false);
      const Num second = lower(d.operand[2], depth);
      undo(m);
      --busy_depth_;
      return std::min(first, second);
    }
    default: return -kInf;
  }
}

Num Prover::through(Node x, Node user, int depth) {
  const Data d = at(user);
  switch (d.code) {
    case Opcode::Add: {
      if (!exact(user, depth)) return kInf;
      return -lower(d.operand[0] == x ? d.operand[1] : d.operand[0], depth);
    }
    case Opcode::Sub: return exact(user, depth) ? upper(d.operand[1], depth) : kInf;
    case Opcode::Max: return 0;
    case Opcode::Cast: return exact(user, depth) ? Num{0} : kInf;
    default: return kInf;
  }
}

Num Prover::at_most(Node x, Node y, int depth) {
  if (x == y) return 0;
  if (at(y).kind == Kind::Constant) return plus(upper(x, depth), -at(y).lo);
  if (at(x).kind == Kind::Constant) return plus(at(x).lo, -lower(y, depth));
  if (depth <= 0 || !spend()) return kInf;
  if (std::find(path_.begin(), path_.end(), std::pair(x, y)) != path_.end()) return kInf;
  path_.emplace_back(x, y);
  Num best = kInf;
  for (std::uint32_t f = at(x).out; f != kNone; f = facts_[f].next_out) {
    const Fact fact = facts_[f];
    const Num k = fact.through ? through(x, fact.to, depth - 1) : fact.k;
    if (k < kInf) best = std::min(best, plus(at_most(fact.to, y, depth - 1), k));
  }
  best = std::min(best, at_most_up(x, y, depth - 1));
  best = std::min(best, at_most_down(x, y, depth - 1));
  path_.pop_back();
  return best;
}

// x <= y + k by what x computes.
Num Prover::at_most_up(Node x, Node y, int depth) {
  const Data d = at(x);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return plus(at_most(b, y, depth), -1);
  if (d.kind != Kind::Operation) return kInf;
  // thread_id < block_dim and block_id < grid_dim on the same axis.
  if (d.code == Opcode::ThreadId || d.code == Opcode::BlockId) {
    const Node count = (d.code == Opcode::ThreadId ? block_dim_ : grid_dim_)[d.axis];
    return count == kNone ? kInf : plus(at_most(count, y, depth), -1);
  }
  if (a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return kInf;
  switch (d.code) {
    case Opcode::Add: {
      if (!exact(x, depth)) return kInf;
      return std::min(plus(at_most(a, y, depth), upper(b, depth)), plus(at_most(b, y, depth), upper(a, depth)));
    }
    case Opcode::Sub: return exact(x, depth) ? plus(at_most(a, y, depth), -lower(b, depth)) : kInf;
    case Opcode::Div:
    case Opcode::Shr:
      if (lower(a, depth) < 0 || (d.code == Opcode::Div && lower(b, depth) < 1)) return kInf;
      return at_most(a, y, depth);
    case Opcode::Rem: {
      Num best = lower(a, depth) >= 0 ? at_most(a, y, depth) : kInf;
      if (lower(b, depth) >= 1) best = std::min(best, plus(at_most(b, y, depth), -1));
      return best;
    }
    case Opcode::And: {
      Num best = lower(a, depth) >= 0 ? at_most(a, y, depth) : kInf;
      if (lower(b, depth) >= 0) best = std::min(best, at_most(b, y, depth));
      return best;
    }
    case Opcode::Min: return std::min(at_most(a, y, depth), at_most(b, y, depth));
    case Opcode::Max: return std::max(at_most(a, y, depth), at_most(b, y, depth));
    case Opcode::Cast: return exact(x, depth) || lower(a, depth) >= 0 ? at_most(a, y, depth) : kInf;
    case Opcode::Select: {
      const std::size_t m = mark();
      ++busy_depth_;
      assume(a, true);
      const Num first = at_most(b, y, depth);
      undo(m);
      assume(a, false);
      const Num second = at_most(d.operand[2], y, depth);
      undo(m);
      --busy_depth_;
      return std::max(first, second);
    }
    default: return kInf;
  }
}

// x <= y + k by what y computes.
Num Prover::at_most_down(Node x, Node y, int depth) {
  const Data d = at(y);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return at_most(x, a, depth);
  if (d.kind != Kind::Operation || a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return kInf;
  switch (d.code) {
    case Opcode::Add:
      if (!exact(y, depth)) return kInf;
      return std::min(plus(at_most(x, a, depth), -lower(b, depth)), plus(at_most(x, b, depth), -lower(a, depth)));
    case Opcode::Sub: return exact(y, depth) ? plus(at_most(x, a, depth), upper(b, depth)) : kInf;
    case Opcode::Max: return std::min(at_most(x, a, depth), at_most(x, b, depth));
    case Opcode::Min: return std::max(at_most(x, a, depth), at_most(x, b, depth));
    case Opcode::Cast: return exact(y, depth) ? at_most(x, a, depth) : kInf;
    default: return kInf;
  }
}

}  // namespace kiln::ir
