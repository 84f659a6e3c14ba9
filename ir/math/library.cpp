#include "math/library.h"

#include "math/functions.h"

namespace kiln::ir::math {

ValueId expand(Builder& builder, Opcode op, ValueId a, ValueId b) {
  const V x(builder, a);
  const V y(builder, b == kNone ? a : b);
  switch (op) {
    case Opcode::Exp: return exp(x).id();
    case Opcode::Exp2: return exp2(x).id();
    case Opcode::Exp10: return exp10(x).id();
    case Opcode::Expm1: return expm1(x).id();
    case Opcode::Log: return log(x).id();
    case Opcode::Log2: return log2(x).id();
    case Opcode::Log10: return log10(x).id();
    case Opcode::Log1p: return log1p(x).id();
    case Opcode::Sin: return sin(x).id();
    case Opcode::Cos: return cos(x).id();
    case Opcode::Tan: return tan(x).id();
    case Opcode::Asin: return asin(x).id();
    case Opcode::Acos: return acos(x).id();
    case Opcode::Atan: return atan(x).id();
    case Opcode::Atan2: return atan2(x, y).id();
    case Opcode::Sinh: return sinh(x).id();
    case Opcode::Cosh: return cosh(x).id();
    case Opcode::Tanh: return tanh(x).id();
    case Opcode::Asinh: return asinh(x).id();
    case Opcode::Acosh: return acosh(x).id();
    case Opcode::Atanh: return atanh(x).id();
    case Opcode::Erf: return erf(x).id();
    case Opcode::Erfc: return erfc(x).id();
    case Opcode::Cbrt: return cbrt(x).id();
    case Opcode::Hypot: return hypot(x, y).id();
    case Opcode::Rhypot: return rhypot(x, y).id();
    case Opcode::Pow: return pow(x, y).id();
    case Opcode::PowI: return powi(x, y).id();
    case Opcode::Rsqrt: return rsqrt(x).id();
    default: return (wide(x) ? rem64(x, y) : rem32(x, y)).id();
  }
}

ValueId expand_fast(Builder& builder, Opcode op, ValueId a, ValueId b) {
  const V x(builder, a);
  const V y(builder, b == kNone ? a : b);
  switch (op) {
    case Opcode::Exp: return fast::exp(x).id();
    case Opcode::Exp2: return fast::exp2(x).id();
    case Opcode::Exp10: return fast::exp10(x).id();
    case Opcode::Log: return fast::log(x).id();
    case Opcode::Log2: return fast::log2(x).id();
    case Opcode::Log10: return fast::log10(x).id();
    case Opcode::Sin: return fast::sin(x).id();
    case Opcode::Cos: return fast::cos(x).id();
    case Opcode::Tan: return fast::tan(x).id();
    case Opcode::Tanh: return fast::tanh(x).id();
    case Opcode::Pow: return fast::pow(x, y).id();
    case Opcode::PowI: return fast::powi(x, y).id();
    case Opcode::Rsqrt: return fast::rsqrt(x).id();
    default: return kNone;
  }
}

}  // namespace kiln::ir::math
