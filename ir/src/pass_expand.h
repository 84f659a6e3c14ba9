// What the passes share that put several operations in the place of one.
#pragma once
#include <vector>

#include "kiln/ir/builder.h"
#include "kiln/ir/kernel.h"

namespace kiln::ir {

// In the place of each operation with wanted(op) comes what expand(builder, op) appends; its result is the value that others use from then
// on. Operands are replaced before it is asked; what it appends is not asked about again. O(operations).
template <class Wanted, class Expand>
class Expansion {
 public:
  Expansion(Kernel& kernel, Wanted wanted, Expand expand)
      : k_(kernel), b_(kernel), wanted_(wanted), expand_(expand), replaced_(kernel.ops.size()) {
    for (OpId i = 0; i < replaced_.size(); ++i) replaced_[i] = i;
  }

  void run() {
    bool any = false;
    walk(k_, 0, [&](OpId id) { any = any || wanted_(k_.op(id)); });
    if (any) region(0);
  }

 private:
  void region(RegionId r) {
    const std::vector<OpId> in = k_.regions[r].ops;
    std::vector<OpId> out;
    out.reserve(in.size());
    for (const OpId id : in) {
      for (ValueId& v : k_.ops[id].operands) v = replaced_[v];
      for (std::size_t i = 0; i < k_.ops[id].regions.size(); ++i) region(k_.ops[id].regions[i]);
      if (!wanted_(k_.ops[id])) {
        out.push_back(id);
        continue;
      }
      const Op op = k_.ops[id];
      const RegionId scratch = b_.new_region();
      b_.set_region(scratch);
      b_.loc = op.loc;
      replaced_[id] = expand_(b_, op);
      std::vector<OpId>& made = k_.regions[scratch].ops;
      out.insert(out.end(), made.begin(), made.end());
      made.clear();
    }
    k_.regions[r].ops = std::move(out);
  }

  Kernel& k_;
  Builder b_;
  Wanted wanted_;
  Expand expand_;
  std::vector<ValueId> replaced_;  // only operations that were there before are looked up
};

}  // namespace kiln::ir
