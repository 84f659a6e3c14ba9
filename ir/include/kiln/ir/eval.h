// What each pure operation computes, on bit patterns: the single definition that folding and the interpreter share.
#pragma once
#include <cstdint>
#include <optional>
#include <span>

#include "kiln/ir/ops.h"

namespace kiln::ir {

// Result bits of a pure operation of form Unary, Binary, Ternary, Compare, Select or Convert. `operand_type` is the type of the
// computed operands (for Select: of the second; for Convert: the source), `result_type` that of the result. Bit patterns as described at
// value_mask. NaN results are canonical quiet NaNs (0x7fc00000, 0x7ff8000000000000), except that neg, abs, copysign, select and bit_cast
// move bits. Nothing for operations without a definition here (math functions, float rem: expanded before; types without arithmetic). Never
// traps; thread-safe; independent of the caller's rounding mode being other than nearest (precondition: nearest).
std::optional<std::uint64_t> evaluate(Opcode code, Type result_type, Type operand_type, std::span<const std::uint64_t> operands);

// Identity of a reduction as a bit pattern, see Combine.
std::uint64_t identity(Combine how, Type type);
// One step of a reduction or scan: combine(a, b) with the meaning of add, mul, min, max, and, or, xor.
std::uint64_t combine(Combine how, Type type, std::uint64_t a, std::uint64_t b);

}  // namespace kiln::ir
