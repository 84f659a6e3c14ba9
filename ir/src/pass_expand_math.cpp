// Math functions and float remainder become plain operations, so that no backend and no evaluator ever sees them.
#include "kiln/ir/passes.h"
#include "math/library.h"
#include "pass_expand.h"

namespace kiln::ir {

void expand_math(Kernel& kernel) {
  const bool fast = kernel.options.fast_math;
  const auto wanted = [](const Op& op) { return is_math_function(op.code) || (op.code == Opcode::Rem && is_float(op.type)); };
  const auto expand = [fast](Builder& b, const Op& op) {
    // f16 and bf16 by way of f32.
    const auto operand = [&](std::size_t i) {
      return is_half(b.type(op.operands[i])) ? b.cast(Type::F32, op.operands[i]) : op.operands[i];
    };
    const ValueId first = operand(0), second = op.operands.size() > 1 ? operand(1) : kNone;
    ValueId result = kNone;
    if (fast && b.type(first) == Type::F32) result = math::expand_fast(b, op.code, first, second);
    if (result == kNone) result = math::expand(b, op.code, first, second);
    return is_half(op.type) ? b.cast(op.type, result) : result;
  };
  Expansion(kernel, wanted, expand).run();
}

}  // namespace kiln::ir
