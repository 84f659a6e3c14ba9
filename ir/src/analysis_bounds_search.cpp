// Questions: bounds of a value and of a difference, found by a search through facts and through what operations compute.
#include <algorithm>

#include "analysis_bounds_numbers.h"
#include "analysis_bounds_prover.h"

namespace kiln::ir {

using Num = Prover::Num;

bool Prover::in_range(Node index, std::uint32_t mem, unsigned dimension) {
  const Node bound = extent(mem, dimension);
  budget_ = kProverBudget;
  if (lower(index, kProverDepth) < 0) return false;
  budget_ = kProverBudget;
  return at_most(index, bound, kProverDepth) <= -1;
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
    if (k < kInfinity) best = std::min(best, plus(upper(fact.to, depth - 1), k));
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

// The mathematical result of an add, sub, product of no negative numbers, or narrowing cast fits its type.
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
    case Opcode::Mul: return product(x, depth, false).has_value();
    case Opcode::Cast: return lower(a, depth) >= min && upper(a, depth) <= max;
    default: return false;
  }
}

// The range of a product of no negative numbers that fits its type; its lower end is that of the types unless it is asked for. Each bound
// is asked once: asked again, when the budget is spent, it may be wider, and the products of such bounds need not fit a Num.
std::optional<Prover::Range> Prover::product(Node x, int depth, bool with_lower) {
  const Node a = at(x).operand[0], b = at(x).operand[1];
  const Type type = at(x).type;
  const auto least = [&](Node n) { return with_lower || at(n).lo < 0 ? lower(n, depth) : at(n).lo; };
  const Num l = least(a), m = least(b), u = upper(a, depth), v = upper(b, depth);
  constexpr Num limit = Num{1} << 62;
  if (l < 0 || m < 0 || u < l || v < m || u >= limit || v >= limit || u * v > type_max(type)) return {};
  return Range{l * m, u * v};
}

Num Prover::upper_of_operation(Node x, int depth) {
  const Data d = at(x);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return plus(upper(b, depth), -1);
  if (a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return kInfinity;
  switch (d.code) {
    case Opcode::Add: return exact(x, depth) ? upper(a, depth) + upper(b, depth) : kInfinity;
    case Opcode::Sub:
      if (!exact(x, depth)) return kInfinity;
      return std::min(upper(a, depth) - lower(b, depth), at_most(a, b, depth));
    case Opcode::Mul: {
      const auto range = product(x, depth, false);
      return range ? range->hi : kInfinity;
    }
    case Opcode::Div: {
      const Num divisor = lower(b, depth);
      return divisor >= 1 && non_negative(a, depth) ? upper(a, depth) / divisor : kInfinity;
    }
    case Opcode::Rem: {
      Num best = std::max<Num>(upper(a, depth), 0);
      if (lower(b, depth) >= 1) best = std::min(best, upper(b, depth) - 1);
      return best;
    }
    case Opcode::And: {
      Num best = kInfinity;
      if (non_negative(a, depth)) best = upper(a, depth);
      if (non_negative(b, depth)) best = std::min(best, upper(b, depth));
      return best;
    }
    case Opcode::Or:
    case Opcode::Xor:
      if (!non_negative(a, depth) || !non_negative(b, depth)) return kInfinity;
      return all_bits(std::max(upper(a, depth), upper(b, depth)));
    case Opcode::Shl: {
      const Num u = upper(a, depth), count = upper(b, depth);
      if (!non_negative(a, depth) || !non_negative(b, depth) || u < 0 || u >= (Num{1} << 62) || count < 0 || count >= 62) return kInfinity;
      const Num shifted = u << static_cast<int>(count);
      return shifted <= type_max(d.type) ? shifted : kInfinity;
    }
    case Opcode::Shr: {
      if (!non_negative(a, depth)) return kInfinity;
      const Num u = upper(a, depth), count = lower(b, depth);
      return count >= 0 && count < 64 ? u >> static_cast<int>(count) : u;
    }
    case Opcode::Min: return std::min(upper(a, depth), upper(b, depth));
    case Opcode::Max: return std::max(upper(a, depth), upper(b, depth));
    case Opcode::Cast: {
      if (exact(x, depth)) return upper(a, depth);
      // Cutting bits off a non-negative value, or reading an unsigned one as signed, only ever makes it smaller.
      return non_negative(a, depth) ? upper(a, depth) : kInfinity;
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
    default: return kInfinity;
  }
}

Num Prover::lower_of_operation(Node x, int depth) {
  const Data d = at(x);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return lower(a, depth);
  if (a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return -kInfinity;
  switch (d.code) {
    case Opcode::Add: return exact(x, depth) ? lower(a, depth) + lower(b, depth) : -kInfinity;
    case Opcode::Sub:
      if (!exact(x, depth)) return -kInfinity;
      return std::max(lower(a, depth) - upper(b, depth), -at_most(b, a, depth));
    case Opcode::Mul: {
      const auto range = product(x, depth, true);
      return range ? range->lo : -kInfinity;
    }
    case Opcode::Div: {
      const Num divisor = upper(b, depth);
      return divisor >= 1 && non_negative(a, depth) && lower(b, depth) >= 1 ? lower(a, depth) / divisor : -kInfinity;
    }
    case Opcode::Rem:
      if (non_negative(a, depth)) return 0;
      return -kInfinity;
    case Opcode::And: return non_negative(a, depth) || non_negative(b, depth) ? Num{0} : -kInfinity;
    case Opcode::Shr: return non_negative(a, depth) ? Num{0} : -kInfinity;
    case Opcode::Min: return std::min(lower(a, depth), lower(b, depth));
    case Opcode::Max: return std::max(lower(a, depth), lower(b, depth));
    case Opcode::Cast: return exact(x, depth) ? lower(a, depth) : -kInfinity;
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
    default: return -kInfinity;
  }
}

Num Prover::through(Node x, Node user, int depth) {
  const Data d = at(user);
  switch (d.code) {
    case Opcode::Add: {
      if (!exact(user, depth)) return kInfinity;
      return -lower(d.operand[0] == x ? d.operand[1] : d.operand[0], depth);
    }
    case Opcode::Sub: return exact(user, depth) ? upper(d.operand[1], depth) : kInfinity;
    case Opcode::Max: return 0;
    case Opcode::Cast: return exact(user, depth) ? Num{0} : kInfinity;
    default: return kInfinity;
  }
}

Num Prover::at_most(Node x, Node y, int depth) {
  if (x == y) return 0;
  if (at(y).kind == Kind::Constant) return plus(upper(x, depth), -at(y).lo);
  if (at(x).kind == Kind::Constant) return plus(at(x).lo, -lower(y, depth));
  if (depth <= 0 || !spend()) return kInfinity;
  if (std::find(path_.begin(), path_.end(), std::pair(x, y)) != path_.end()) return kInfinity;
  path_.emplace_back(x, y);
  Num best = kInfinity;
  for (std::uint32_t f = at(x).out; f != kNone; f = facts_[f].next_out) {
    const Fact fact = facts_[f];
    const Num k = fact.through ? through(x, fact.to, depth - 1) : fact.k;
    if (k < kInfinity) best = std::min(best, plus(at_most(fact.to, y, depth - 1), k));
  }
  if (is_row_major(x)) {  // such a value has no facts of its own; what lies below y may be the product that it is compared with
    for (std::uint32_t f = at(y).in; f != kNone; f = facts_[f].next_in) {
      const Fact fact = facts_[f];
      best = std::min(best, plus(at_most(x, fact.from, depth - 1), fact.k));
    }
  }
  best = std::min(best, at_most_up(x, y, depth - 1));
  best = std::min(best, at_most_down(x, y, depth - 1));
  // A thread's number in a declared block, say, against a size that is required to be that of the block.
  if (is_integer(at(x).type) && at(x).hi < type_max(at(x).type)) best = std::min(best, plus(at(x).hi, -lower(y, depth - 1)));
  path_.pop_back();
  return best;
}

// x <= y + k by what x computes.
Num Prover::at_most_up(Node x, Node y, int depth) {
  const Data d = at(x);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return plus(at_most(b, y, depth), -1);
  if (d.kind != Kind::Operation) return kInfinity;
  // thread_id < block_dim and block_id < grid_dim on the same axis.
  if (d.code == Opcode::ThreadId || d.code == Opcode::BlockId) {
    const Node count = (d.code == Opcode::ThreadId ? block_dim_ : grid_dim_)[d.axis];
    return count == kNone ? kInfinity : plus(at_most(count, y, depth), -1);
  }
  if (a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return kInfinity;
  switch (d.code) {
    case Opcode::Add: {
      if (!exact(x, depth)) return kInfinity;
      return std::min(plus(at_most(a, y, depth), upper(b, depth)), plus(at_most(b, y, depth), upper(a, depth)));
    }
    case Opcode::Sub: return exact(x, depth) ? plus(at_most(a, y, depth), -lower(b, depth)) : kInfinity;
    case Opcode::Div:
    case Opcode::Shr:
      if (!non_negative(a, depth) || (d.code == Opcode::Div && lower(b, depth) < 1)) return kInfinity;
      return at_most(a, y, depth);
    case Opcode::Rem: {
      Num best = non_negative(a, depth) ? at_most(a, y, depth) : kInfinity;
      if (lower(b, depth) >= 1) best = std::min(best, plus(at_most(b, y, depth), -1));
      return best;
    }
    case Opcode::And: {
      Num best = non_negative(a, depth) ? at_most(a, y, depth) : kInfinity;
      if (non_negative(b, depth)) best = std::min(best, at_most(b, y, depth));
      return best;
    }
    case Opcode::Min: return std::min(at_most(a, y, depth), at_most(b, y, depth));
    case Opcode::Max: return std::max(at_most(a, y, depth), at_most(b, y, depth));
    case Opcode::Cast: return exact(x, depth) || non_negative(a, depth) ? at_most(a, y, depth) : kInfinity;
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
    default: return kInfinity;
  }
}

// x <= y + k by what y computes.
Num Prover::at_most_down(Node x, Node y, int depth) {
  const Data d = at(y);
  const Node a = d.operand[0], b = d.operand[1];
  if (d.kind == Kind::Induction) return at_most(x, a, depth);
  if (d.kind != Kind::Operation || a == kNone || !is_integer(d.type) || info(d.code).form == Form::Compare) return kInfinity;
  switch (d.code) {
    case Opcode::Add:
      if (!exact(y, depth)) return kInfinity;
      return std::min(plus(at_most(x, a, depth), -lower(b, depth)), plus(at_most(x, b, depth), -lower(a, depth)));
    case Opcode::Sub: return exact(y, depth) ? plus(at_most(x, a, depth), upper(b, depth)) : kInfinity;
    case Opcode::Max: return std::min(at_most(x, a, depth), at_most(x, b, depth));
    case Opcode::Min: return std::max(at_most(x, a, depth), at_most(x, b, depth));
    case Opcode::Cast: return exact(y, depth) ? at_most(x, a, depth) : kInfinity;
    case Opcode::Mul: return at_most_product(x, y, depth);
    default: return kInfinity;
  }
}

}  // namespace kiln::ir
