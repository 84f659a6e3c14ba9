#include "math/library.h"

#include "math/functions.h"

namespace kiln::ir::math {

bool has_expansion(Opcode op, Type type) {
  if (op == Opcode::Rem) return type == Type::F32 || type == Type::F64;
  return is_math_function(op) && type == Type::F32;
}

ValueId expand(Builder& builder, Opcode op, ValueId a, ValueId b) {
  const V x(builder, a);
  switch (op) {
    case Opcode::Exp: return exp32(x).id();
    case Opcode::Log: return log32(x).id();
    case Opcode::Sin: return sin32(x).id();
    case Opcode::Cos: return cos32(x).id();
    case Opcode::Tanh: return tanh32(x).id();
    case Opcode::Pow: return pow32(x, V(builder, b)).id();
    case Opcode::Rsqrt: return rsqrt32(x).id();
    default: return (x.type() == Type::F64 ? rem64(x, V(builder, b)) : rem32(x, V(builder, b))).id();
  }
}

}  // namespace kiln::ir::math
