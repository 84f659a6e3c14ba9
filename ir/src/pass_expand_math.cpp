// Math functions and float remainder become plain operations, so that no backend and no evaluator ever sees them.
#include <vector>

#include "kiln/ir/builder.h"
#include "kiln/ir/passes.h"
#include "math/library.h"

namespace kiln::ir {
namespace {

class Expansion {
 public:
  explicit Expansion(Kernel& kernel) : k_(kernel), b_(kernel), replaced_(kernel.ops.size()) {
    for (OpId i = 0; i < replaced_.size(); ++i) replaced_[i] = i;
  }

  void run() { region(0); }

 private:
  bool wanted(const Op& op) const { return is_math_function(op.code) || (op.code == Opcode::Rem && is_float(op.type)); }

  void region(RegionId r) {
    const std::vector<OpId> in = k_.regions[r].ops;
    std::vector<OpId> out;
    out.reserve(in.size());
    for (const OpId id : in) {
      for (ValueId& v : k_.ops[id].operands) v = replaced_[v];
      for (std::size_t i = 0; i < k_.ops[id].regions.size(); ++i) region(k_.ops[id].regions[i]);
      if (!wanted(k_.ops[id])) {
        out.push_back(id);
        continue;
      }
      const Op op = k_.ops[id];
      const RegionId scratch = b_.new_region();
      b_.set_region(scratch);
      b_.loc = op.loc;
      // f16 and bf16 by way of f32.
      const auto operand = [&](std::size_t i) {
        return is_half(b_.type(op.operands[i])) ? b_.cast(Type::F32, op.operands[i]) : op.operands[i];
      };
      const ValueId first = operand(0), second = op.operands.size() > 1 ? operand(1) : kNone;
      const ValueId result = math::expand(b_, op.code, first, second);
      replaced_[id] = is_half(op.type) ? b_.cast(op.type, result) : result;
      std::vector<OpId>& made = k_.regions[scratch].ops;
      out.insert(out.end(), made.begin(), made.end());
      made.clear();
    }
    k_.regions[r].ops = std::move(out);
  }

  Kernel& k_;
  Builder b_;
  std::vector<ValueId> replaced_;  // only recorded operations are looked up; expansions use their own results directly
};

}  // namespace

void expand_math(Kernel& kernel) {
  bool any = false;
  walk(kernel, 0, [&](OpId id) {
    const Op& op = kernel.op(id);
    any = any || is_math_function(op.code) || (op.code == Opcode::Rem && is_float(op.type));
  });
  if (any) Expansion(kernel).run();
}

}  // namespace kiln::ir
