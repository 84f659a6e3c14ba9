// Facts: what a condition that holds says about its values, and for how long.
#include "analysis_bounds_numbers.h"
#include "analysis_bounds_prover.h"

namespace kiln::ir {

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
    if (busy_depth_ == 0) budget_ = kProverBudget;
    for (int side = 0; side < 2; ++side, std::swap(a, b)) {
      if (upper(a, kProverDepth) <= lower(b, kProverDepth) || at_most(a, b, kProverDepth) <= 0) return fact(a, b, -1);
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

}  // namespace kiln::ir
