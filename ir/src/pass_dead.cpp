// Drops what nobody sees: pure operations and loads without a use, sets of slots that nothing gets, control flow without content.
#include <algorithm>
#include <vector>

#include "kiln/ir/passes.h"

namespace kiln::ir {
namespace {

class DeadCode {
 public:
  explicit DeadCode(Kernel& kernel) : k_(kernel) {}

  // Backwards, so that a use disappears before its definition is looked at. Gets of a slot may come before its sets (loops), so
  // slots take further rounds.
  void run() {
    do {
      uses_.assign(k_.ops.size(), 0);
      gets_.assign(k_.slots.size(), 0);
      count(0);
      changed_ = false;
      sweep(0);
    } while (changed_);
  }

 private:
  void count(RegionId region) {
    for (const OpId id : k_.regions[region].ops) {
      const Op& op = k_.ops[id];
      for (const ValueId v : op.operands) ++uses_[v];
      if (op.code == Opcode::Get) ++gets_[op.index];
      for (const RegionId r : op.regions) count(r);
    }
  }

  bool empty(RegionId r) const { return k_.regions[r].ops.empty(); }

  // A counted loop without content always ends, so nobody can tell.
  bool dead(OpId id) const {
    const Op& op = k_.ops[id];
    // A checked load that is not proven may be out of range, and then it is reported whether its value is used or not.
    const bool silent_load = op.code == Opcode::Load && (!k_.options.checked || op.bounds == Bounds::Proven);
    if (is_pure(op.code) || op.code == Opcode::Get || silent_load || info(op.code).effect == Effect::Time) return uses_[id] == 0;
    switch (op.code) {
      case Opcode::Set: return gets_[op.index] == 0;
      case Opcode::Assume:
      case Opcode::Check: {  // one that cannot fail; an unchecked kernel has no place to report to
        const Op& condition = k_.ops[op.operands[0]];
        return !k_.options.checked || (condition.code == Opcode::Const && condition.imm != 0);
      }
      case Opcode::If:
      case Opcode::Switch:
      case Opcode::For: return std::all_of(op.regions.begin(), op.regions.end(), [&](RegionId r) { return empty(r); });
      default: return false;
    }
  }

  void sweep(RegionId region) {
    for (std::size_t i = k_.regions[region].ops.size(); i-- > 0;) {
      const OpId id = k_.regions[region].ops[i];
      for (std::size_t r = k_.ops[id].regions.size(); r-- > 0;) sweep(k_.ops[id].regions[r]);
      if (!dead(id)) continue;
      const Op& op = k_.ops[id];
      for (const ValueId v : op.operands) --uses_[v];
      if (op.code == Opcode::Get && --gets_[op.index] == 0) changed_ = true;  // sets already passed may be dead now
      k_.regions[region].ops[i] = kNone;
    }
    std::erase(k_.regions[region].ops, kNone);
  }

  Kernel& k_;
  std::vector<std::uint32_t> uses_, gets_;
  bool changed_ = false;
};

}  // namespace

void eliminate_dead(Kernel& kernel) { DeadCode(kernel).run(); }

}  // namespace kiln::ir
