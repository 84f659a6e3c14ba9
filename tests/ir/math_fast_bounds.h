// What docs/math.md says of the functions of f32 in kernels with fast_math: in which range they hold which bound. Shared by the test of
// the bounds and by math_ulp, which measures.
#pragma once
#include <cmath>
#include <span>

#include "kiln/ir/ops.h"

namespace kiln::ir::test {

enum class Measure { Ulps, Absolute };
struct FastBound {
  Opcode op;
  double least, most;  // of the argument; of the first one where there are two. Results below 2^-126 count as 0 is for them
  Measure measure;
  double bound;
};

inline constexpr FastBound kFastBounds[] = {
    {Opcode::Exp, -87.33, 88.37, Measure::Ulps, 3},
    {Opcode::Exp2, -126, 127.49, Measure::Ulps, 3},
    {Opcode::Exp10, -37.9, 38.37, Measure::Ulps, 3},
    {Opcode::Log, 0x1p-126, 0x1.fffffep127, Measure::Ulps, 6},
    {Opcode::Log2, 0x1p-126, 0x1.fffffep127, Measure::Ulps, 6},
    {Opcode::Log10, 0x1p-126, 0x1.fffffep127, Measure::Ulps, 9},
    {Opcode::Sin, -65536, 65536, Measure::Absolute, 0x1p-22},
    {Opcode::Cos, -65536, 65536, Measure::Absolute, 0x1p-22},
    {Opcode::Tan, -65536, 65536, Measure::Ulps, 10},
    {Opcode::Tanh, -INFINITY, INFINITY, Measure::Absolute, 0x1p-22},
    {Opcode::Rsqrt, 0x1p-149, 0x1.fffffep127, Measure::Ulps, 1.5},
    {Opcode::Pow, 0x1p-126, 0x1.fffffep127, Measure::Ulps, 500},
    {Opcode::PowI, 0x1p-126, 0x1.fffffep127, Measure::Ulps, 500},
};

inline const FastBound* fast_bound(Opcode op) {
  for (const FastBound& b : kFastBounds)
    if (b.op == op) return &b;
  return nullptr;
}

// Whether the bound is one for these arguments: `exact` is the true value.
inline bool holds_for(const FastBound& b, double x, double exact) {
  if (!(x >= b.least && x <= b.most)) return false;
  return b.op != Opcode::Pow && b.op != Opcode::PowI ? true : std::fabs(exact) >= 0x1p-126 && std::fabs(exact) <= 0x1p127;
}

}  // namespace kiln::ir::test
