// The math functions of the kernel language, written in its own operations: one definition for every device. Private to ir/.
#pragma once
#include "kiln/ir/builder.h"

namespace kiln::ir::math {

// Appends the operations that compute `op` at the builder's insertion point (which may move to another region only for a while: it ends
// where it began) and returns the result. `b` is kNone for functions of one argument. Precondition: `op` is a math function or rem, of f32
// or f64.
ValueId expand(Builder& builder, Opcode op, ValueId a, ValueId b);

// The shorter form for kernels with fast_math, in the same way; kNone where `op`, of f32, has none.
ValueId expand_fast(Builder& builder, Opcode op, ValueId a, ValueId b);

}  // namespace kiln::ir::math
