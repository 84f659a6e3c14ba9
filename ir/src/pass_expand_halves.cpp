// f16 and bf16 without instructions of their own: every operation on them becomes one of f32 or f64 between conversions, so that each
// result is the exact one rounded once whatever LLVM or the hardware would do. What stays for the backends are the conversions between them
// and f32, and what moves 16 bits: constants, loads, stores, selects, locals, bit_cast, warp operations.
//
// A sum, product, quotient or root that is rounded first to f32 (24 bits) and then to f16 (11) is the exact one rounded once; so is a sum
// or root for bf16 (8). A product or quotient of bf16 may be subnormal in f32, and a fused multiply-add or a long integer has more bits
// than any float: those are rounded to odd on the way, which keeps for the last rounding on which side of a tie they were.
#include "kiln/ir/expr.h"
#include "kiln/ir/passes.h"
#include "pass_expand.h"

namespace kiln::ir {
namespace {

using V = Expr;

// The number with the last bit set where `nearest` is not exact: the neighbour of `nearest` towards the exact number, or itself. `grows`:
// the exact number's magnitude is greater.
V odd(V nearest, V inexact, V grows) {
  const V bits = nearest.as(nearest.type() == Type::F64 ? Type::U64 : Type::U32);
  const V one = bits.like(1);
  const V last = bits & one;
  const V even = last == 0.0;
  const V up = bits + one, down = bits - one;
  const V step = select(grows, up, down);
  const V wanted = inexact & even;
  return select(wanted, step, bits).as(nearest.type());
}

V odd_f32(V x) {  // of an f64
  const V nearest = x.cast(Type::F32);
  const V back = nearest.cast(Type::F64);
  const V below = back < x;
  const V above = x < back;  // both false for NaN
  const V inexact = below | above;
  const V had = abs(back), has = abs(x);
  return odd(nearest, inexact, had < has);
}

// Of two f64 whose sum does not overflow. Knuth's error of a sum is exact.
V odd_sum(V a, V b) {
  const V sum = a + b;
  const V b_part = sum - a;
  const V a_part = sum - b_part;
  const V a_lost = a - a_part, b_lost = b - b_part;
  const V error = a_lost + b_lost;
  const V below = error < 0.0, above = error > 0.0;  // both false for NaN, which an infinite sum leaves
  const V inexact = below | above;
  const V positive = sum > 0.0;
  return odd(sum, inexact, above == positive);
}

bool wanted(const Kernel& k, const Op& op) {
  if (!is_pure(op.code) || op.operands.empty() || is_math_function(op.code)) return false;
  if (op.code == Opcode::Select || op.code == Opcode::BitCast || op.code == Opcode::Rem) return false;
  const Type from = k.op(op.operands[0]).type;
  if (op.code != Opcode::Cast) return is_half(from);
  return (is_half(from) && op.type != Type::F32) || (is_half(op.type) && from != Type::F32);
}

// One operation.
class HalfOperation {
 public:
  explicit HalfOperation(Builder& builder) : b_(builder) {}

  V expand(const Op& op) {
    const V first = operand(op, 0);
    const Type t = first.type();
    switch (op.code) {
      case Opcode::Cast: return is_half(t) ? from_half(first, op.type) : to_half(first, op.type);
      case Opcode::Neg: return sign_bits(op, [](V a, V, V sign) { return a ^ sign; });
      case Opcode::Abs:
        return sign_bits(op, [](V a, V, V sign) {
          const V rest = sign.unary(Opcode::Not);
          return a & rest;
        });
      case Opcode::CopySign:
        return sign_bits(op, [](V a, V b, V sign) {
          const V rest = sign.unary(Opcode::Not);
          const V magnitude = a & rest, taken = b & sign;
          return magnitude | taken;
        });
      case Opcode::Fma: {
        const V a = very_wide(op, 0), b = very_wide(op, 1), c = very_wide(op, 2);
        const V product = a * b;  // exact
        return odd_f32(odd_sum(product, c)).cast(t);
      }
      case Opcode::Mul:
      case Opcode::Div:
        if (t == Type::BF16) {
          const V a = very_wide(op, 0), b = very_wide(op, 1);
          return odd_f32(a.binary(op.code, b)).cast(t);
        }
        break;
      default: break;
    }
    const V a = wide(op, 0);
    const V result = op.operands.size() == 1 ? a.unary(op.code) : a.binary(op.code, wide(op, 1));
    return info(op.code).form == Form::Compare ? result : result.cast(t);
  }

 private:
  V operand(const Op& op, std::size_t i) { return {b_, op.operands[i]}; }
  V wide(const Op& op, std::size_t i) { return operand(op, i).cast(Type::F32); }
  V very_wide(const Op& op, std::size_t i) { return wide(op, i).cast(Type::F64); }

  template <class F>
  V sign_bits(const Op& op, F&& f) {
    const V a = operand(op, 0).as(Type::U16);
    const V b = op.operands.size() > 1 ? operand(op, 1).as(Type::U16) : a;
    const V sign = a.bits(0x8000);
    return f(a, b, sign).as(op.type);
  }

  V from_half(V x, Type to) {
    if (to == x.type()) return x;
    return x.cast(Type::F32).cast(to);
  }

  V to_half(V x, Type to) {
    const Type from = x.type();
    if (from == Type::F64) return odd_f32(x).cast(to);
    if (bit_width(from) <= 16) return x.cast(Type::F32).cast(to);  // exact in f32
    if (to == Type::F16) {                                         // from 2^16 on it is infinite
      const V most = x.like(0x1p17);
      V near = x.binary(Opcode::Min, most);
      if (is_signed(from)) {
        const V least = x.like(-0x1p17);
        near = near.binary(Opcode::Max, least);
      }
      return near.cast(Type::F32).cast(to);
    }
    if (bit_width(from) == 32) return odd_f32(x.cast(Type::F64)).cast(to);
    const V count = x.like(32);
    const V high = (x >> count).cast(is_signed(from) ? Type::I32 : Type::U32).cast(Type::F64) * 0x1p32;
    const V low = x.cast(Type::U32).cast(Type::F64);
    return odd_f32(odd_sum(high, low)).cast(to);
  }

  Builder& b_;
};

}  // namespace

void expand_halves(Kernel& kernel) {
  Expansion(
      kernel, [&](const Op& op) { return wanted(kernel, op); }, [](Builder& b, const Op& op) { return HalfOperation(b).expand(op).id(); })
      .run();
}

}  // namespace kiln::ir
