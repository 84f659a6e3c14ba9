// Constants, identities, known conditions, forwarded slots, small branches turned into selects. One walk in program order.
// Everything here keeps bits; the arithmetic identities are in pass_simplify.cpp.
#include <algorithm>
#include <vector>

#include "kiln/ir/passes.h"
#include "pass_simplify.h"
#include "pass_util.h"

namespace kiln::ir {
namespace {

// What a slot holds at a point: an operation's value, zero (never set), or unknown.
constexpr ValueId kUnknown = kNone, kZero = kNone - 1;
class Known {
 public:
  explicit Known(std::size_t slots) : held_(slots, kZero) {}
  ValueId operator[](std::uint32_t slot) const { return held_[slot]; }
  void set(std::uint32_t slot, ValueId v) {
    if (held_[slot] == v) return;
    log_.emplace_back(slot, held_[slot]);
    held_[slot] = v;
  }
  void forget(const std::vector<std::uint32_t>& slots) {
    for (const std::uint32_t s : slots) set(s, kUnknown);
  }
  // Back to what was known at a mark: values made inside a region are not visible after it.
  std::size_t mark() const { return log_.size(); }
  void undo(std::size_t mark) {
    for (; log_.size() > mark; log_.pop_back()) held_[log_.back().first] = log_.back().second;
  }

 private:
  std::vector<ValueId> held_;
  std::vector<std::pair<std::uint32_t, ValueId>> log_;
};

// A branch of at most so many cheap pure operations is computed unconditionally.
constexpr std::size_t kSpeculated = 8;

class Fold {
 public:
  explicit Fold(Kernel& kernel) : k_(kernel), sets_(kernel) {
    replaced_.resize(kernel.ops.size());
    for (OpId i = 0; i < replaced_.size(); ++i) replaced_[i] = i;
  }

  // Whether anything changed.
  bool run() {
    Known known(k_.slots.size());
    region(0, known);
    return changed_;
  }

 private:
  // Rewrites one region. `known` is the state at its beginning and, afterwards, at its end. What is assumed in it holds in it.
  void region(RegionId r, Known& known) {
    const std::size_t assumed = assumed_.size();
    rewrite(r, known);
    for (; assumed_.size() > assumed; assumed_.pop_back()) replaced_[assumed_.back().first] = assumed_.back().second;
  }
  void rewrite(RegionId r, Known& known) {
    std::vector<OpId> out;
    const std::vector<OpId> in = std::move(k_.regions[r].ops);
    out.reserve(in.size());
    std::vector<OpId>* const outer = out_;
    out_ = &out;
    for (std::size_t i = 0; i < in.size(); ++i) {
      const bool keeps_yield = k_.ops[in.back()].code == Opcode::Yield;
      visit(in[i], known, keeps_yield);
      changed_ = changed_ || out.empty() || out.back() != in[i];
      if (keeps_yield || out.empty() || falls_through(k_, out.back())) continue;
      changed_ = changed_ || i + 1 < in.size();
      break;  // the rest is never reached
    }
    k_.regions[r].ops = std::move(out);
    out_ = outer;
  }

  void visit(OpId id, Known& known, bool in_condition) {
    for (ValueId& v : k_.ops[id].operands) v = replaced_[v];
    for (std::size_t i = 0; !assumed_.empty() && i < k_.ops[id].operands.size(); ++i) {
      if (const ValueId truth = assumed(k_.ops[k_.ops[id].operands[i]]); truth != kNone) k_.ops[id].operands[i] = truth;
    }
    const Opcode code = k_.ops[id].code;
    if (is_pure(code)) return pure(id);
    switch (code) {
      case Opcode::Get: return get(id, known);
      case Opcode::Set: return set(id, known);
      case Opcode::If: return branch(id, known, in_condition);
      case Opcode::Switch: return choose(id, known, in_condition);
      case Opcode::For: return for_loop(id, known);
      case Opcode::While: return while_loop(id, known);
      case Opcode::Assume:
        if (!k_.options.checked) assume(k_.ops[id].operands[0], true);
        out_->push_back(id);
        return;
      default: out_->push_back(id);
    }
  }

  void pure(OpId id) {
    const Simplified s = simplify(k_, id);
    changed_ = changed_ || s.rewritten;
    if (s.value == kNone) {
      out_->push_back(id);
    } else {
      replace(id, s.value);
    }
  }
  // A comparison that is assumed, or whose opposite is.
  ValueId assumed(const Op& op) {
    if (assumed_.empty() || info(op.code).form != Form::Compare) return kNone;
    for (const auto& [v, before] : assumed_) {
      const Op& known = k_.ops[v];
      const bool same = known.code == op.code, opposite = known.code == inverse(op);
      if ((!same && !opposite) || known.operands != op.operands) continue;
      const bool holds = (k_.ops[replaced_[v]].imm != 0) == same;
      const OpId result = append({.code = Opcode::Const, .type = Type::Bool, .imm = holds ? 1u : 0u, .loc = op.loc});
      out_->push_back(result);
      changed_ = true;
      return result;
    }
    return kNone;
  }
  Opcode inverse(const Op& op) const {
    if (op.code == Opcode::Eq) return Opcode::Ne;
    if (op.code == Opcode::Ne) return Opcode::Eq;
    if (is_float(k_.ops[op.operands[0]].type)) return Opcode::Const;  // where an operand is NaN both are false
    if (op.code == Opcode::Lt) return Opcode::Ge;
    if (op.code == Opcode::Ge) return Opcode::Lt;
    return op.code == Opcode::Gt ? Opcode::Le : Opcode::Gt;
  }
  void replace(OpId id, ValueId by) {
    if (replaced_.size() <= id) replaced_.resize(id + 1);
    replaced_[id] = by;
  }
  // The author's word, in unchecked kernels: further down the condition is what it is said to be.
  void assume(ValueId v, bool holds) {
    const Op op = k_.ops[v];
    if (op.code == Opcode::Const) return;
    if (op.code == Opcode::Not) assume(op.operands[0], !holds);
    if (op.code == (holds ? Opcode::And : Opcode::Or)) {
      for (const ValueId part : op.operands) assume(part, holds);
    }
    const OpId known = append({.code = Opcode::Const, .type = Type::Bool, .imm = holds ? 1u : 0u, .loc = op.loc});
    out_->push_back(known);
    assumed_.emplace_back(v, replaced_[v]);
    replaced_[v] = known;
  }
  OpId append(Op op) {
    k_.ops.push_back(std::move(op));
    const auto id = static_cast<OpId>(k_.ops.size() - 1);
    replace(id, id);
    return id;
  }

  void get(OpId id, Known& known) {
    const std::uint32_t slot = k_.ops[id].index;
    const ValueId held = known[slot];
    if (held != kUnknown && held != kZero) return replace(id, held);
    if (held == kZero) {
      make_constant(k_.ops[id], 0);
      changed_ = true;
    }
    known.set(slot, id);
    out_->push_back(id);
  }

  void set(OpId id, Known& known) {
    const std::uint32_t slot = k_.ops[id].index;
    const ValueId held = known[slot], v = k_.ops[id].operands[0];
    const bool same = held == v || (held == kZero && k_.ops[v].code == Opcode::Const && k_.ops[v].imm == 0);
    if (same) return;
    known.set(slot, v);
    out_->push_back(id);
  }

  const Op* constant(ValueId v) const { return k_.ops[v].code == Opcode::Const ? &k_.ops[v] : nullptr; }

  // Puts the operations of a region in the place of the operation that held it.
  void splice(RegionId r, Known& known) {
    region(r, known);
    const std::vector<OpId>& ops = k_.regions[r].ops;
    out_->insert(out_->end(), ops.begin(), ops.end());
  }
  // Whether `splice` may put region r into a while's condition, which must go on to its yield.
  bool may_splice(RegionId r, bool in_condition) const {
    const std::vector<OpId>& ops = k_.regions[r].ops;
    return !in_condition || ops.empty() || falls_through(k_, ops.back());
  }

  // Rewrites the alternatives of an if or switch. Afterwards what is known is what was known before, less what an alternative that goes
  // on to the join has set.
  void alternatives(const std::vector<RegionId>& regions, Known& known) {
    for (const RegionId r : regions) {
      const std::size_t m = known.mark();
      region(r, known);
      known.undo(m);
    }
    for (const RegionId r : regions) {
      if (falls_through_region(k_, r)) known.forget(sets_.of(r));
    }
  }

  void branch(OpId id, Known& known, bool in_condition) {
    const std::vector<RegionId> regions = k_.ops[id].regions;
    if (const Op* c = constant(k_.ops[id].operands[0])) {
      const RegionId taken = regions[c->imm != 0 ? 0 : 1];
      if (may_splice(taken, in_condition)) return splice(taken, known);
    }
    std::vector<std::pair<std::uint32_t, ValueId>> before;
    for (const RegionId r : regions) {
      for (const std::uint32_t slot : sets_.of(r)) before.emplace_back(slot, known[slot]);
    }
    alternatives(regions, known);
    if (k_.regions[regions[0]].ops.empty() && k_.regions[regions[1]].ops.empty()) return;
    if (select_instead(id, before, known)) return;
    out_->push_back(id);
  }

  void choose(OpId id, Known& known, bool in_condition) {
    const std::vector<RegionId> regions = k_.ops[id].regions;
    if (const Op* c = constant(k_.ops[id].operands[0])) {
      const std::vector<std::uint64_t>& cases = k_.ops[id].cases;
      const auto taken = static_cast<std::size_t>(std::find(cases.begin(), cases.end(), c->imm) - cases.begin());
      if (may_splice(regions[taken], in_condition)) return splice(regions[taken], known);
    }
    alternatives(regions, known);
    if (std::all_of(regions.begin(), regions.end(), [&](RegionId r) { return k_.regions[r].ops.empty(); })) return;
    out_->push_back(id);
  }

  void for_loop(OpId id, Known& known) {
    const Op& op = k_.ops[id];
    const Op *lo = constant(op.operands[0]), *hi = constant(op.operands[1]);
    if (lo && hi && !less(op.type, lo->imm, hi->imm)) return;
    const RegionId body = op.regions[0];
    known.forget(sets_.of(body));
    const std::size_t m = known.mark();
    region(body, known);
    known.undo(m);
    out_->push_back(id);
  }

  void while_loop(OpId id, Known& known) {
    const RegionId condition = k_.ops[id].regions[0], body = k_.ops[id].regions[1];
    known.forget(sets_.of(condition));
    known.forget(sets_.of(body));
    const std::size_t m = known.mark();
    region(condition, known);
    known.undo(m);
    const std::vector<OpId>& ops = k_.regions[condition].ops;
    const Op& yield = k_.ops[ops.back()];
    const Op* c = yield.code == Opcode::Yield ? constant(yield.operands[0]) : nullptr;
    if (c && c->imm == 0 && !leaves_loop(k_, condition)) {
      out_->insert(out_->end(), ops.begin(), ops.end() - 1);  // the condition runs once, the body never
      return;
    }
    region(body, known);
    known.undo(m);
    out_->push_back(id);
  }

  static bool less(Type t, std::uint64_t a, std::uint64_t b) { return is_signed(t) ? sign_extend(t, a) < sign_extend(t, b) : a < b; }

  // --- a branch that only computes -> selects -----------------------------------------------------------------------
  // Only cheap pure operations, gets and sets on either side.
  bool only_computes(RegionId r, std::size_t& budget) const {
    for (const OpId id : k_.regions[r].ops) {
      const Op& op = k_.ops[id];
      if (op.code == Opcode::Get || op.code == Opcode::Set) continue;
      if (!is_pure(op.code) || is_math_function(op.code)) return false;
      if (op.code == Opcode::Div || op.code == Opcode::Rem || op.code == Opcode::Sqrt) return false;
      if (op.code == Opcode::Const) continue;
      if (budget-- == 0) return false;
    }
    return true;
  }

  bool select_instead(OpId id, const std::vector<std::pair<std::uint32_t, ValueId>>& before, Known& known) {
    const Op op = k_.ops[id];
    std::size_t budget = kSpeculated;
    if (!only_computes(op.regions[0], budget) || !only_computes(op.regions[1], budget)) return false;
    // Gets left in a region come before its sets of that slot (later ones were forwarded), so they read what was there before the branch.
    std::vector<std::uint32_t> slots;
    std::vector<ValueId> last[2];
    for (int side = 0; side < 2; ++side) {
      for (const OpId inner : k_.regions[op.regions[side]].ops) {
        const Op& o = k_.ops[inner];
        if (o.code != Opcode::Set) {
          out_->push_back(inner);
          continue;
        }
        auto at = static_cast<std::size_t>(std::find(slots.begin(), slots.end(), o.index) - slots.begin());
        if (at == slots.size()) {
          slots.push_back(o.index);
          last[0].push_back(kNone);
          last[1].push_back(kNone);
        }
        last[side][at] = o.operands[0];
      }
    }
    for (std::size_t i = 0; i < slots.size(); ++i) {
      const Type type = k_.slots[slots[i]].type;
      const ValueId held = std::find_if(before.begin(), before.end(), [&](const auto& b) { return b.first == slots[i]; })->second;
      ValueId arms[2] = {last[0][i], last[1][i]};
      for (ValueId& arm : arms) {
        if (arm == kNone) arm = old_value(slots[i], type, held, op.loc);
      }
      const OpId choice = append({.code = Opcode::Select, .type = type, .loc = op.loc, .operands = {op.operands[0], arms[0], arms[1]}});
      pure(choice);
      const OpId assign = append({.code = Opcode::Set, .index = slots[i], .loc = op.loc, .operands = {replaced_[choice]}});
      known.set(slots[i], held);  // still true here, so that setting the same again is dropped
      set(assign, known);
    }
    return true;
  }
  ValueId old_value(std::uint32_t slot, Type type, ValueId held, Loc loc) {
    if (held != kUnknown && held != kZero) return held;
    const bool zero = held == kZero;
    const OpId id = append({.code = zero ? Opcode::Const : Opcode::Get, .type = type, .index = zero ? kNone : slot, .loc = loc});
    out_->push_back(id);
    return id;
  }

  Kernel& k_;
  SlotSets sets_;
  std::vector<ValueId> replaced_;
  std::vector<std::pair<ValueId, ValueId>> assumed_;  // in the regions being walked: the value, and what stood for it before
  std::vector<OpId>* out_ = nullptr;
  bool changed_ = false;
};

}  // namespace

// Until nothing changes: what vanishes in one walk (a loop, a set in it) may let the next one know more. Two walks are the rule; the limit
// is for kernels made to need many.
void fold_and_simplify(Kernel& kernel) {
  for (int round = 0; round < 32 && Fold(kernel).run(); ++round) {}
}

}  // namespace kiln::ir
