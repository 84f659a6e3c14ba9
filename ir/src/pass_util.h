// Small questions about structure that several passes and analyses ask. Private to ir/.
#pragma once
#include <algorithm>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::ir {

// Whether control can go on to what follows operation `id` in its region. Wide: a loop is taken to end.
inline bool falls_through(const Kernel& k, OpId id) {
  const Op& op = k.op(id);
  if (info(op.code).form == Form::Leave) return false;
  if (op.code != Opcode::If && op.code != Opcode::Switch) return true;
  return std::any_of(op.regions.begin(), op.regions.end(), [&](RegionId r) {
    const std::vector<OpId>& ops = k.regions[r].ops;
    return ops.empty() || falls_through(k, ops.back());
  });
}
inline bool falls_through_region(const Kernel& k, RegionId r) {
  return k.regions[r].ops.empty() || falls_through(k, k.regions[r].ops.back());
}

// Whether a break or continue in `region` belongs to the loop around it.
inline bool leaves_loop(const Kernel& k, RegionId region) {
  for (const OpId id : k.regions[region].ops) {
    const Op& op = k.op(id);
    if (op.code == Opcode::Break || op.code == Opcode::Continue) return true;
    if (op.code == Opcode::For || op.code == Opcode::While) continue;
    for (const RegionId r : op.regions) {
      if (leaves_loop(k, r)) return true;
    }
  }
  return false;
}

// Per region: the slots that operations in it or below it set. Computed once; stays wide enough while a pass only moves or drops sets.
class SlotSets {
 public:
  explicit SlotSets(const Kernel& k) : sets_(k.regions.size()) { collect(k, 0); }
  const std::vector<std::uint32_t>& of(RegionId r) const { return sets_[r]; }

 private:
  void collect(const Kernel& k, RegionId region) {
    std::vector<std::uint32_t>& mine = sets_[region];
    for (const OpId id : k.regions[region].ops) {
      const Op& op = k.op(id);
      if (op.code == Opcode::Set) mine.push_back(op.index);
      for (const RegionId r : op.regions) {
        collect(k, r);
        mine.insert(mine.end(), sets_[r].begin(), sets_[r].end());
      }
    }
    std::sort(mine.begin(), mine.end());
    mine.erase(std::unique(mine.begin(), mine.end()), mine.end());
  }
  std::vector<std::vector<std::uint32_t>> sets_;
};

}  // namespace kiln::ir
