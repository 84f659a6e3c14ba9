// Values that are written like C++ arithmetic and appended by a Builder: for code that makes IR of formulas.
//
// Each operator appends one operation when it runs. C++ leaves open which operand of + runs first, and the order of operations must be the
// same from every compiler, so at most one operand of an operator or call may itself append something: name the others first.
// Preconditions are the Builder's: operands of one type, and of a type that the operation has.
#pragma once
#include "kiln/ir/builder.h"
#include "kiln/ir/floats.h"

namespace kiln::ir {

class Expr {
 public:
  Expr(Builder& b, ValueId id) : b_(&b), id_(id) {}
  ValueId id() const { return id_; }
  Builder& builder() const { return *b_; }
  Type type() const { return b_->type(id_); }

  Expr unary(Opcode c) const { return {*b_, b_->unary(c, id_)}; }
  Expr binary(Opcode c, Expr o) const { return {*b_, b_->binary(c, id_, o.id_)}; }
  // A literal of this value's type: of floats the nearest one, of integers the whole number.
  Expr like(double v) const {
    return {*b_, b_->constant(type(), is_float(type()) ? float_bits(type(), v)
                                                       : value_mask(type()) & static_cast<std::uint64_t>(static_cast<std::int64_t>(v)))};
  }
  // A literal of this value's type by its bits; those beyond its width are dropped.
  Expr bits(std::uint64_t v) const { return {*b_, b_->constant(type(), v & value_mask(type()))}; }
  Expr cast(Type t) const { return {*b_, b_->cast(t, id_)}; }
  Expr as(Type t) const { return t == type() ? *this : Expr(*b_, b_->bit_cast(t, id_)); }  // bit_cast

 private:
  Builder* b_;
  ValueId id_;
};

#define KILN_EXPR_OPERATOR(symbol, code)                                            \
  inline Expr operator symbol(Expr a, Expr b) { return a.binary(Opcode::code, b); } \
  inline Expr operator symbol(Expr a, double b) { return a.binary(Opcode::code, a.like(b)); }
KILN_EXPR_OPERATOR(+, Add)
KILN_EXPR_OPERATOR(-, Sub)
KILN_EXPR_OPERATOR(*, Mul)
KILN_EXPR_OPERATOR(/, Div)
KILN_EXPR_OPERATOR(%, Rem)
KILN_EXPR_OPERATOR(<, Lt)
KILN_EXPR_OPERATOR(<=, Le)
KILN_EXPR_OPERATOR(>, Gt)
KILN_EXPR_OPERATOR(>=, Ge)
KILN_EXPR_OPERATOR(==, Eq)
KILN_EXPR_OPERATOR(!=, Ne)
KILN_EXPR_OPERATOR(<<, Shl)
KILN_EXPR_OPERATOR(>>, Shr)
#undef KILN_EXPR_OPERATOR
inline Expr operator&(Expr a, Expr b) { return a.binary(Opcode::And, b); }
inline Expr operator|(Expr a, Expr b) { return a.binary(Opcode::Or, b); }
inline Expr operator^(Expr a, Expr b) { return a.binary(Opcode::Xor, b); }
inline Expr operator-(Expr a) { return a.unary(Opcode::Neg); }

inline Expr fma(Expr a, Expr b, Expr c) { return {a.builder(), a.builder().fma(a.id(), b.id(), c.id())}; }
inline Expr fma(Expr a, Expr b, double c) { return fma(a, b, a.like(c)); }
inline Expr fma(Expr a, double b, Expr c) { return fma(a, a.like(b), c); }
inline Expr select(Expr c, Expr a, Expr b) { return {c.builder(), c.builder().select(c.id(), a.id(), b.id())}; }
inline Expr select(Expr c, Expr a, double b) { return select(c, a, a.like(b)); }
inline Expr select(Expr c, double a, Expr b) { return select(c, b.like(a), b); }
inline Expr abs(Expr a) { return a.unary(Opcode::Abs); }
inline Expr sqrt(Expr a) { return a.unary(Opcode::Sqrt); }
inline Expr trunc(Expr a) { return a.unary(Opcode::Trunc); }
inline Expr round_even(Expr a) { return a.unary(Opcode::RoundEven); }
inline Expr at_most(Expr a, double top) { return a.binary(Opcode::MinNan, a.like(top)); }  // NaN stays
inline Expr at_least(Expr a, double bottom) { return a.binary(Opcode::MaxNan, a.like(bottom)); }
inline Expr copysign(Expr a, Expr b) { return a.binary(Opcode::CopySign, b); }

// c[0] + c[1] x + ... by Horner's rule, each step fused.
template <std::size_t N>
Expr polynomial(Expr x, const double (&c)[N]) {
  Expr p = x.like(c[N - 1]);
  for (std::size_t i = N - 1; i-- > 0;) p = fma(p, x, c[i]);
  return p;
}

}  // namespace kiln::ir
