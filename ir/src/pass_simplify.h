// What one pure operation simplifies to. Private to ir/.
#pragma once
#include "kiln/ir/kernel.h"

namespace kiln::ir {

struct Simplified {
  ValueId value = kNone;   // the existing value that the operation equals; kNone: keep the operation
  bool rewritten = false;  // it was rewritten in place
};
// Rewrites operation `id` in place as far as bits are kept (into a constant, an operation with fewer operands, ...) or names the
// operand that it equals. Makes no new operations. Precondition: `id` is pure and its operands are simplified.
Simplified simplify(Kernel& k, OpId id);

void make_constant(Op& op, std::uint64_t bits);

}  // namespace kiln::ir
