#include "kiln/ir/analysis.h"
#include "verify_impl.h"

namespace kiln::ir::verifier {
namespace {

class Barriers {
 public:
  Barriers(const Kernel& k, Findings& findings) : k_(k), out_(findings), levels_(analyze_uniformity(k).region) {}
  void run() { region(0, kNone); }

 private:
  // `culprit`: the outermost operation above whose regions threads of a block may enter one without the other.
  void region(RegionId r, OpId culprit) {
    for (const OpId id : k_.regions[r].ops) {
      const Op& op = k_.op(id);
      if (culprit != kNone && is_block_barrier(op.code)) refuse(id, culprit);
      for (const RegionId below : op.regions) {
        const bool divergent = culprit == kNone && levels_[below] > Level::Block;
        region(below, divergent ? id : culprit);
      }
    }
  }

  void refuse(OpId id, OpId culprit) {
    const Op& c = k_.op(culprit);
    const bool loop = c.code == Opcode::For || c.code == Opcode::While;
    const std::string place = to_string(k_, c.loc);
    out_.at_op(id, std::string(info(k_.op(id).code).mnemonic) + " stands under the " + std::string(info(c.code).mnemonic) +
                       (place == "?" ? " of operation " + std::to_string(culprit) : " at " + place) + ", whose " +
                       (loop ? "range or condition, or a break or continue in it," : "condition") +
                       " may differ among the threads of the block; all threads that have not returned must come to a barrier together");
  }

  const Kernel& k_;
  Findings& out_;
  std::vector<Level> levels_;
};

}  // namespace

void check_barriers(const Kernel& k, Findings& findings) {
  bool any = false;
  for (const Op& op : k.ops) any = any || is_block_barrier(op.code);
  if (any) Barriers(k, findings).run();
}

}  // namespace kiln::ir::verifier
