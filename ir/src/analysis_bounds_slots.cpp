#include "analysis_bounds_slots.h"

#include <algorithm>

#include "analysis_bounds_numbers.h"
#include "pass_util.h"

namespace kiln::ir {
namespace {

using Range = Prover::Range;

// One evaluation of all operations in program order, gets giving the ranges assumed; what the sets put in comes out.
class Round {
 public:
  Round(const Kernel& kernel, const std::vector<Range>& assumed)
      : k_(kernel), assumed_(assumed), found_(assumed.size()), prover_(kernel), node_(kernel.ops.size(), kNone) {
    region(0);
  }
  const std::vector<Range>& found() const { return found_; }

 private:
  void region(RegionId r) {
    for (const OpId id : k_.regions[r].ops) {
      const Op& op = k_.ops[id];
      if (op.code == Opcode::Set) {
        const Range in = prover_.range_of(node_[op.operands[0]]);
        Range& out = found_[op.index];
        if (countable(k_.slots[op.index].type)) out = {std::min(out.lo, in.lo), std::max(out.hi, in.hi)};
      } else if (op.code == Opcode::Get) {
        node_[id] = prover_.opaque(op.type, assumed_[op.index]);
      } else if (op.code == Opcode::For) {
        node_[id] = prover_.induction(op.type, node_[op.operands[0]], node_[op.operands[1]], node_[op.operands[2]]);
      } else if (op.type != Type::Void) {
        node_[id] = value(op);
      }
      for (const RegionId inner : op.regions) region(inner);
    }
  }

  Prover::Node value(const Op& op) {
    if (!is_pure(op.code)) return prover_.opaque(op.type);
    operands_.clear();
    for (const ValueId v : op.operands) operands_.push_back(node_[v]);
    return prover_.operation(op, op.operands.empty() ? Type::Void : k_.ops[op.operands[0]].type, operands_);
  }

  const Kernel& k_;
  const std::vector<Range>& assumed_;
  std::vector<Range> found_;
  Prover prover_;
  std::vector<Prover::Node> node_, operands_;
};

std::vector<Range> held_under(const Kernel& kernel, const std::vector<Range>& assumed) { return Round(kernel, assumed).found(); }

bool within(const std::vector<Range>& inner, const std::vector<Range>& outer) {
  for (std::size_t s = 0; s < inner.size(); ++s) {
    if (inner[s].lo < outer[s].lo || inner[s].hi > outer[s].hi) return false;
  }
  return true;
}

// Whether some loop changes an integer local: else what walking in order finds is as good.
bool loops_change_integers(const Kernel& k, const SlotSets& sets) {
  bool any = false;
  walk(k, 0, [&](OpId id) {
    const Op& op = k.op(id);
    if (op.code != Opcode::For && op.code != Opcode::While) return;
    for (const RegionId r : op.regions) {
      for (const std::uint32_t s : sets.of(r)) any = any || is_integer(k.slots[s].type);
    }
  });
  return any;
}

}  // namespace

std::vector<Range> slot_ranges(const Kernel& kernel) {
  std::vector<Range> anything(kernel.slots.size());
  for (std::size_t s = 0; s < anything.size(); ++s) {
    if (countable(kernel.slots[s].type)) anything[s] = Prover::range_of(kernel.slots[s].type);
  }
  if (!loops_change_integers(kernel, SlotSets(kernel))) return anything;
  // Grow what is assumed until nothing leaves it; what keeps growing counts without an end that is seen here.
  std::vector<Range> assumed(kernel.slots.size());  // zero before the first set
  for (int round = 0; round < 6; ++round) {
    const std::vector<Range> found = held_under(kernel, assumed);
    if (within(found, assumed)) {
      // It holds. So may the smaller one that follows from it: a remainder bounds even a counter without an end.
      return within(held_under(kernel, found), found) ? found : assumed;
    }
    for (std::size_t s = 0; s < assumed.size(); ++s) {
      const Range grown{std::min(assumed[s].lo, found[s].lo), std::max(assumed[s].hi, found[s].hi)};
      if (!(grown == assumed[s])) assumed[s] = round >= 2 ? anything[s] : grown;
    }
  }
  return anything;
}

}  // namespace kiln::ir
