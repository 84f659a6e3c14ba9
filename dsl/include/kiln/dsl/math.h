// Functions on kernel values, by argument-dependent lookup and as kiln::name. At least one operand is a kernel value; host values
// beside it take its type and must be exact in it. The meaning of each is the same on every device: docs/language.md.
#pragma once
#include <utility>

#include "kiln/dsl/value.h"

namespace kiln {

namespace dsl {

// Stands in for the type when operands differ, so that the only error is the sentence.
template <class T>
using checked_t = std::conditional_t<std::is_void_v<T>, f32, T>;

}  // namespace dsl

#define KILN_ONE_TYPE(T) \
  static_assert(!std::is_void_v<T>, "kiln: the operands have different kernel types. There is no implicit conversion: write cast<T>(x).")

#define KILN_UNARY(NAME, OPCODE, CONDITION, SENTENCE)                             \
  template <dsl::Dsl A>                                                           \
  auto NAME(A&& a, dsl::Where w = dsl::Where::current()) {                        \
    using T = dsl::value_t<A>;                                                    \
    KILN_NEEDS(T, CONDITION<T>, "kiln: " #NAME " " SENTENCE);                     \
    return Val<T>(dsl::unary(ir::Opcode::OPCODE, Use<T>(std::forward<A>(a), w))); \
  }
#define KILN_FLOAT "needs a float; write cast<f32>(x)."
#define KILN_INTEGER "needs an integer; bit_cast<u32>(x) gives the bits of a float."
KILN_UNARY(abs, Abs, Number, "needs a number.")
KILN_UNARY(sqrt, Sqrt, Floating, KILN_FLOAT)
KILN_UNARY(floor, Floor, Floating, KILN_FLOAT)
KILN_UNARY(ceil, Ceil, Floating, KILN_FLOAT)
KILN_UNARY(trunc, Trunc, Floating, KILN_FLOAT)
KILN_UNARY(round_even, RoundEven, Floating, KILN_FLOAT)
KILN_UNARY(exp, Exp, Floating, KILN_FLOAT)
KILN_UNARY(exp2, Exp2, Floating, KILN_FLOAT)
KILN_UNARY(exp10, Exp10, Floating, KILN_FLOAT)
KILN_UNARY(expm1, Expm1, Floating, KILN_FLOAT)
KILN_UNARY(log2, Log2, Floating, KILN_FLOAT)
KILN_UNARY(log10, Log10, Floating, KILN_FLOAT)
KILN_UNARY(log1p, Log1p, Floating, KILN_FLOAT)
KILN_UNARY(sin, Sin, Floating, KILN_FLOAT)
KILN_UNARY(cos, Cos, Floating, KILN_FLOAT)
KILN_UNARY(tan, Tan, Floating, KILN_FLOAT)
KILN_UNARY(asin, Asin, Floating, KILN_FLOAT)
KILN_UNARY(acos, Acos, Floating, KILN_FLOAT)
KILN_UNARY(atan, Atan, Floating, KILN_FLOAT)
KILN_UNARY(sinh, Sinh, Floating, KILN_FLOAT)
KILN_UNARY(cosh, Cosh, Floating, KILN_FLOAT)
KILN_UNARY(tanh, Tanh, Floating, KILN_FLOAT)
KILN_UNARY(asinh, Asinh, Floating, KILN_FLOAT)
KILN_UNARY(acosh, Acosh, Floating, KILN_FLOAT)
KILN_UNARY(atanh, Atanh, Floating, KILN_FLOAT)
KILN_UNARY(erf, Erf, Floating, KILN_FLOAT)
KILN_UNARY(erfc, Erfc, Floating, KILN_FLOAT)
KILN_UNARY(cbrt, Cbrt, Floating, KILN_FLOAT)
KILN_UNARY(rsqrt, Rsqrt, Floating, KILN_FLOAT)
KILN_UNARY(clz, Clz, Integer, KILN_INTEGER)
KILN_UNARY(ctz, Ctz, Integer, KILN_INTEGER)
KILN_UNARY(popcount, Popcount, Integer, KILN_INTEGER)
#undef KILN_UNARY
#define KILN_LOG_IS "log(x) is the natural logarithm; a line of text for the host is log(\"x = {}\", x)"
template <dsl::Dsl A>
[[nodiscard(KILN_LOG_IS)]] auto log(A&& a, dsl::Where w = dsl::Where::current()) {
  using T = dsl::value_t<A>;
  KILN_NEEDS(T, Floating<T>, "kiln: " KILN_LOG_IS ". The logarithm " KILN_FLOAT);
  return Val<T>(dsl::unary(ir::Opcode::Log, Use<T>(std::forward<A>(a), w)));
}
#undef KILN_LOG_IS

#define KILN_BINARY(NAME, OPCODE, CONDITION, SENTENCE)               \
  template <class A, class B>                                        \
  requires dsl::OneKernelType<A, B>                                  \
  auto NAME(A&& a, B&& b, dsl::Where w = dsl::Where::current()) {    \
    KILN_ONE_TYPE(dsl::common_t<A KILN_COMMA B>);                    \
    using T = dsl::checked_t<dsl::common_t<A, B>>;                   \
    KILN_NEEDS(T, CONDITION<T>, "kiln: " #NAME " " SENTENCE);        \
    const Use<T> x(std::forward<A>(a), w), y(std::forward<B>(b), w); \
    return Val<T>(dsl::binary(ir::Opcode::OPCODE, x, y));            \
  }
#define KILN_COMMA ,
KILN_BINARY(min, Min, Number, "needs numbers.")
KILN_BINARY(max, Max, Number, "needs numbers.")
KILN_BINARY(min_nan, MinNan, Floating, KILN_FLOAT)
KILN_BINARY(max_nan, MaxNan, Floating, KILN_FLOAT)
KILN_BINARY(copysign, CopySign, Floating, KILN_FLOAT)
KILN_BINARY(pow, Pow, Floating, KILN_FLOAT)
KILN_BINARY(atan2, Atan2, Floating, KILN_FLOAT)  // y, x
KILN_BINARY(hypot, Hypot, Floating, KILN_FLOAT)
KILN_BINARY(rhypot, Rhypot, Floating, KILN_FLOAT)
KILN_BINARY(mul_hi, MulHi, Integer, KILN_INTEGER)
#undef KILN_BINARY
#undef KILN_INTEGER

// x to the power n, a whole number of its own type.
template <dsl::Dsl A, class N>
auto powi(A&& a, N&& n, dsl::Where w = dsl::Where::current()) {
  using T = dsl::value_t<A>;
  KILN_NEEDS(T, Floating<T>, "kiln: powi " KILN_FLOAT);
  constexpr bool whole = DslOf<N, i32> || std::integral<std::remove_cvref_t<N>>;
  static_assert(whole, "kiln: the exponent of powi is an i32; write cast<i32>(n), or pow(x, y) for an exponent of the base's type.");
  if constexpr (whole) {
    const Use<T> x(std::forward<A>(a), w);
    const Use<i32> exponent(std::forward<N>(n), w);
    return Val<T>(dsl::binary(ir::Opcode::PowI, x, exponent));
  } else {
    return dsl::trapped<Val<T>>();
  }
}

template <dsl::Host A, class N>
requires DslOf<N, i32>
auto powi(A, N&&) {
  static_assert(dsl::never<A>, "kiln: the base of powi is a host value; give its type: powi(Val<f32>(2), n).");
  return dsl::trapped<Val<std::conditional_t<Floating<A>, A, f32>>>();
}

// a * b + c, rounded once.
template <class A, class B, class C>
requires dsl::OneKernelType<A, B, C>
auto fma(A&& a, B&& b, C&& c, dsl::Where w = dsl::Where::current()) {
  KILN_ONE_TYPE(dsl::common_t<A KILN_COMMA B KILN_COMMA C>);
  using T = dsl::checked_t<dsl::common_t<A, B, C>>;
  KILN_NEEDS(T, Floating<T>, "kiln: fma " KILN_FLOAT);
  const Use<T> x(std::forward<A>(a), w), y(std::forward<B>(b), w), z(std::forward<C>(c), w);
  return Val<T>(dsl::ternary(ir::Opcode::Fma, x, y, z));
}

// c ? a : b. Both sides are computed; a condition that is a host bool is a constant of the kernel.
template <class C, class A, class B>
requires(dsl::Dsl<C> || std::same_as<std::remove_cvref_t<C>, bool>) && dsl::OneKernelType<A, B>
auto select(C&& c, A&& a, B&& b, dsl::Where w = dsl::Where::current()) {
  KILN_ONE_TYPE(dsl::common_t<A KILN_COMMA B>);
  using T = dsl::checked_t<dsl::common_t<A, B>>;
  const Use<bool> cond(std::forward<C>(c), w);
  const Use<T> x(std::forward<A>(a), w), y(std::forward<B>(b), w);
  return Val<T>(dsl::ternary(ir::Opcode::Select, cond, x, y));
}
template <class C, dsl::Host A, dsl::Host B>
requires(DslOf<C, bool> || std::same_as<std::remove_cvref_t<C>, bool>)
auto select(C&&, A, B) {
  static_assert(dsl::never<A, B>, "kiln: the sides of select are both host values; give the type: select<f32>(c, 1, 0).");
  using T = std::common_type_t<A, B>;
  return dsl::trapped<Val<std::conditional_t<Scalar<T>, T, f32>>>();
}
template <Scalar T>
Val<T> select(Use<bool> c, Use<T> a, Use<T> b) {
  return Val<T>(dsl::ternary(ir::Opcode::Select, c, a, b));
}

// Numeric conversion: float to integer saturates and NaN gives 0; bool gives 0 and 1, and a number gives x != 0. To e4m3 and e5m2 it
// saturates and keeps NaN.
template <Scalar To, dsl::Dsl A>
Val<To> cast(A&& a, dsl::Where w = dsl::Where::current()) {
  using From = dsl::value_t<A>;
  static_assert(!(IsFloat8<To> && std::integral<From>) && !(IsFloat8<From> && std::integral<To>),
                "kiln: e4m3 and e5m2 convert from and to floats only; write cast<T>(cast<f32>(x)).");
  return Val<To>(dsl::convert(ir::Opcode::Cast, ir_type<To>, Use<From>(std::forward<A>(a), w)));
}
// The same bits as another type of the same width.
template <Scalar To, dsl::Dsl A>
Val<To> bit_cast(A&& a, dsl::Where w = dsl::Where::current()) {
  using From = dsl::value_t<A>;
  static_assert(!std::same_as<To, bool> && !std::same_as<From, bool> && sizeof(To) == sizeof(From),
                "kiln: bit_cast needs two number types of the same width.");
  return Val<To>(dsl::convert(ir::Opcode::BitCast, ir_type<To>, Use<From>(std::forward<A>(a), w)));
}

#undef KILN_FLOAT
#undef KILN_COMMA
#undef KILN_ONE_TYPE

}  // namespace kiln
