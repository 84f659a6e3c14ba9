// Values that are written like C++ arithmetic and appended by a Builder. Private to ir/math.
//
// Each operator appends one operation when it runs. C++ leaves open which operand of + runs first, and the order of operations must be the
// same from every compiler, so at most one operand of an operator or call may itself append something: name the others first.
#pragma once
#include <bit>

#include "kiln/ir/builder.h"

namespace kiln::ir::math {

class V {
 public:
  V(Builder& b, ValueId id) : b_(&b), id_(id) {}
  ValueId id() const { return id_; }
  Builder& builder() const { return *b_; }
  Type type() const { return b_->type(id_); }

  V unary(Opcode c) const { return {*b_, b_->unary(c, id_)}; }
  V binary(Opcode c, V o) const { return {*b_, b_->binary(c, id_, o.id_)}; }
  // A literal of this value's type.
  V like(double v) const {
    switch (type()) {
      case Type::F32: return {*b_, b_->const_f32(static_cast<float>(v))};
      case Type::F64: return {*b_, b_->const_f64(v)};
      default: return {*b_, b_->constant(type(), static_cast<std::uint64_t>(static_cast<std::int64_t>(v)))};
    }
  }
  // A literal of this integer type by its bits.
  V bits(std::uint64_t v) const { return {*b_, b_->constant(type(), v)}; }
  V cast(Type t) const { return {*b_, b_->cast(t, id_)}; }
  V as(Type t) const { return {*b_, b_->bit_cast(t, id_)}; }

 private:
  Builder* b_;
  ValueId id_;
};

#define KILN_MATH_OPERATOR(symbol, code)                                   \
  inline V operator symbol(V a, V b) { return a.binary(Opcode::code, b); } \
  inline V operator symbol(V a, double b) { return a.binary(Opcode::code, a.like(b)); }
KILN_MATH_OPERATOR(+, Add)
KILN_MATH_OPERATOR(-, Sub)
KILN_MATH_OPERATOR(*, Mul)
KILN_MATH_OPERATOR(/, Div)
KILN_MATH_OPERATOR(%, Rem)
KILN_MATH_OPERATOR(<, Lt)
KILN_MATH_OPERATOR(<=, Le)
KILN_MATH_OPERATOR(>, Gt)
KILN_MATH_OPERATOR(>=, Ge)
KILN_MATH_OPERATOR(==, Eq)
KILN_MATH_OPERATOR(!=, Ne)
KILN_MATH_OPERATOR(<<, Shl)
KILN_MATH_OPERATOR(>>, Shr)
#undef KILN_MATH_OPERATOR
inline V operator&(V a, V b) { return a.binary(Opcode::And, b); }
inline V operator|(V a, V b) { return a.binary(Opcode::Or, b); }
inline V operator^(V a, V b) { return a.binary(Opcode::Xor, b); }
inline V operator-(V a) { return a.unary(Opcode::Neg); }

inline V fma(V a, V b, V c) { return {a.builder(), a.builder().fma(a.id(), b.id(), c.id())}; }
inline V fma(V a, V b, double c) { return fma(a, b, a.like(c)); }
inline V fma(V a, double b, V c) { return fma(a, a.like(b), c); }
inline V select(V c, V a, V b) { return {c.builder(), c.builder().select(c.id(), a.id(), b.id())}; }
inline V select(V c, V a, double b) { return select(c, a, a.like(b)); }
inline V select(V c, double a, V b) { return select(c, b.like(a), b); }
inline V abs(V a) { return a.unary(Opcode::Abs); }
inline V sqrt(V a) { return a.unary(Opcode::Sqrt); }
inline V trunc(V a) { return a.unary(Opcode::Trunc); }
inline V round_even(V a) { return a.unary(Opcode::RoundEven); }
inline V at_most(V a, double top) { return a.binary(Opcode::MinNan, a.like(top)); }  // NaN stays
inline V at_least(V a, double bottom) { return a.binary(Opcode::MaxNan, a.like(bottom)); }
inline V copysign(V a, V b) { return a.binary(Opcode::CopySign, b); }

// c[0] + c[1] x + ... by Horner's rule, each step fused.
template <std::size_t N>
V polynomial(V x, const double (&c)[N]) {
  V p = x.like(c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) p = fma(p, x, c[i]);
  return p;
}

}  // namespace kiln::ir::math
