// Decides which accesses need a run-time check. Walks the program in order with the facts that hold at each point: requires, the conditions
// of the ifs around, the conditions of exits passed, loop ranges. The reasoning is the prover's; this file decides when a fact begins and
// ends.
#include <algorithm>
#include <vector>

#include "analysis_bounds_prover.h"
#include "analysis_bounds_slots.h"
#include "kiln/ir/analysis.h"
#include "pass_util.h"

namespace kiln::ir {
namespace {

using Node = Prover::Node;

class BoundsWalk {
 public:
  explicit BoundsWalk(Kernel& kernel)
      : k_(kernel), prover_(kernel), sets_(kernel), ranges_(slot_ranges(kernel)), node_(kernel.ops.size(), kNone) {
    held_.resize(k_.slots.size());
    for (std::size_t s = 0; s < held_.size(); ++s)
      held_[s] = is_real(k_.slots[s].type) ? prover_.opaque(k_.slots[s].type) : prover_.constant(0);
  }

  std::size_t run() {
    region(0);
    return checked_;
  }

 private:
  // Facts assumed inside end with the region; what the slots hold goes on.
  void region(RegionId r) {
    const std::size_t m = prover_.mark();
    walk_region(r);
    prover_.undo(m);
  }

  void walk_region(RegionId r) {
    for (const OpId id : k_.regions[r].ops) visit(id);
  }

  void visit(OpId id) {
    Op& op = k_.ops[id];
    if (is_access(op.code)) {
      op.bounds = in_range(op) ? Bounds::Proven : Bounds::Checked;
      op.site = kNone;
      if (op.bounds == Bounds::Checked) ++checked_;
      if (op.type != Type::Void) node_[id] = prover_.opaque(op.type);
      return;
    }
    switch (op.code) {
      case Opcode::Get: node_[id] = held_[op.index]; return;
      case Opcode::Set: held_[op.index] = node_[op.operands[0]]; return;
      case Opcode::Require: return prover_.assume(node_[op.operands[0]], true);
      case Opcode::If: return branch(op);
      case Opcode::Switch: return choose(op);
      case Opcode::For: return for_loop(id);
      case Opcode::While: return while_loop(op);
      case Opcode::VoteAny:
      case Opcode::VoteAll:
      case Opcode::BarrierAny:
      case Opcode::BarrierAll: break;
      default:
        if (op.type == Type::Void) return;
        if (is_pure(op.code)) break;
        node_[id] = prover_.opaque(op.type);
        return;
    }
    operands_.clear();
    for (const ValueId v : op.operands) operands_.push_back(node_[v]);
    const Type operand_type = op.operands.empty() ? Type::Void : k_.ops[op.operands[0]].type;
    node_[id] = prover_.operation(op, operand_type, operands_);
  }

  bool in_range(const Op& op) {
    if (!k_.options.checked) return true;  // the author's word
    for (unsigned d = 0; d < k_.mems[op.index].rank; ++d) {
      if (!prover_.in_range(node_[op.operands[d]], op.index, d)) return false;
    }
    return true;
  }

  void forget(const std::vector<std::uint32_t>& slots) {
    for (const std::uint32_t s : slots) held_[s] = prover_.opaque(k_.slots[s].type, ranges_[s]);
  }

  struct Held {
    std::uint32_t slot;
    Node before;
    Node after[2];
  };

  void branch(const Op& op) {
    const Node cond = node_[op.operands[0]];
    const RegionId regions[2] = {op.regions[0], op.regions[1]};
    std::vector<Held> slots;  // each slot set on either side: before, after the one, after the other
    for (const RegionId r : regions) {
      for (const std::uint32_t s : sets_.of(r)) slots.push_back({s, held_[s], {}});
    }
    bool goes_on[2];
    for (int side = 0; side < 2; ++side) {
      const std::size_t m = prover_.mark();
      prover_.assume(cond, side == 0);
      walk_region(regions[side]);
      prover_.undo(m);
      for (Held& h : slots) h.after[side] = held_[h.slot];
      for (const Held& h : slots) held_[h.slot] = h.before;
      goes_on[side] = falls_through_region(k_, regions[side]);
    }
    const bool one_way = goes_on[0] != goes_on[1];
    const int way = goes_on[0] ? 0 : 1;
    for (const Held& h : slots) {
      held_[h.slot] = one_way ? h.after[way] : prover_.choice(k_.slots[h.slot].type, cond, h.after[0], h.after[1]);
    }
    if (one_way) prover_.assume(cond, way == 0);  // until the end of the region that this branch stands in
  }

  void choose(const Op& op) {
    const Node value = node_[op.operands[0]];
    const Type type = k_.ops[op.operands[0]].type;
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      std::vector<Held> slots;
      for (const std::uint32_t s : sets_.of(op.regions[i])) slots.push_back({s, held_[s], {}});
      const std::size_t m = prover_.mark();
      if (i < op.cases.size()) {
        const Prover::Num c = is_signed(type) ? Prover::Num{sign_extend(type, op.cases[i])} : Prover::Num{op.cases[i]};
        prover_.assume_equal(value, prover_.constant(c));
      }
      walk_region(op.regions[i]);
      prover_.undo(m);
      for (const Held& h : slots) held_[h.slot] = h.before;
    }
    for (const RegionId r : op.regions) forget(sets_.of(r));
  }

  // What an earlier iteration may have set is unknown from the loop's beginning on.
  void for_loop(OpId id) {
    const Op& op = k_.ops[id];
    const RegionId body = op.regions[0];
    forget(sets_.of(body));
    node_[id] = prover_.induction(op.type, node_[op.operands[0]], node_[op.operands[1]], node_[op.operands[2]]);
    region(body);
    forget(sets_.of(body));
  }

  void while_loop(const Op& op) {
    const RegionId condition = op.regions[0], body = op.regions[1];
    for (const RegionId r : {condition, body}) forget(sets_.of(r));
    const std::size_t m = prover_.mark();
    walk_region(condition);
    const OpId last = k_.regions[condition].ops.back();
    if (k_.ops[last].code == Opcode::Yield) prover_.assume(node_[k_.ops[last].operands[0]], true);
    walk_region(body);
    prover_.undo(m);
    for (const RegionId r : {condition, body}) forget(sets_.of(r));
  }

  Kernel& k_;
  Prover prover_;
  SlotSets sets_;
  std::vector<Prover::Range> ranges_;  // per slot, at any time
  std::vector<Node> node_;             // per operation: of its result
  std::vector<Node> held_;             // per slot: what it holds now
  std::vector<Node> operands_;
  std::size_t checked_ = 0;
};

}  // namespace

std::size_t decide_bounds(Kernel& kernel) { return BoundsWalk(kernel).run(); }

}  // namespace kiln::ir
