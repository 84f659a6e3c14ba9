// The math functions of the kernel language, written in its own operations: one definition for every device. Private to ir/.
#pragma once
#include "kiln/ir/builder.h"

namespace kiln::ir::math {

// Whether `op` of operand type `type` is expanded from this library (the other math functions have no definition yet).
bool has_expansion(Opcode op, Type type);

// Appends the operations that compute `op` at the builder's insertion point (which may move to another region only for a while: it ends
// where it began) and returns the result. `b` is used by pow and rem only. Precondition: has_expansion(op, type of a).
ValueId expand(Builder& builder, Opcode op, ValueId a, ValueId b);

}  // namespace kiln::ir::math
