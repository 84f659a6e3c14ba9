// Functions on kernel values that are composed of the operations of the language: recorded as those, at the line of the call. Meanings:
// docs/language.md.
#pragma once
#include <span>
#include <utility>

#include "kiln/dsl/math.h"

namespace kiln {

namespace dsl {

enum class Composed : std::uint8_t {
  Recip,
  Degrees,
  Radians,
  RoundAway,
  IsNan,
  IsInf,
  IsFinite,
  Clamp,
  ModFloor,
  AddSat,
  SubSat,
  RotateLeft,
  RotateRight,
  FunnelLeft,
  FunnelRight,
  ReverseBits,
  ByteSwap,
  FindFirstSet,
  Dp4a
};
Handle compose(Composed what, std::span<const Operand> operands);

template <class T>
concept Integer32 = Integer<T> && sizeof(T) == 4;

}  // namespace dsl

#define KILN_ONE_TYPE(T) \
  static_assert(!std::is_void_v<T>, "kiln: the operands have different kernel types. There is no implicit conversion: write cast<T>(x).")
#define KILN_COMMA ,
#define KILN_FLOAT "needs a float; write cast<f32>(x)."
#define KILN_INTEGER "needs an integer; bit_cast<u32>(x) gives the bits of a float."

#define KILN_COMPOSED_1(NAME, WHAT, RESULT, CONDITION, SENTENCE)     \
  template <dsl::Dsl A>                                              \
  auto NAME(A&& a, dsl::Where w = dsl::Where::current()) {           \
    using T = dsl::value_t<A>;                                       \
    KILN_NEEDS(T, CONDITION<T>, "kiln: " #NAME " " SENTENCE);        \
    const dsl::Operand operands[] = {Use<T>(std::forward<A>(a), w)}; \
    return Val<RESULT>(dsl::compose(dsl::Composed::WHAT, operands)); \
  }
KILN_COMPOSED_1(recip, Recip, T, Floating, KILN_FLOAT)
KILN_COMPOSED_1(degrees, Degrees, T, Floating, KILN_FLOAT)
KILN_COMPOSED_1(radians, Radians, T, Floating, KILN_FLOAT)
KILN_COMPOSED_1(round_away, RoundAway, T, Floating, KILN_FLOAT)
KILN_COMPOSED_1(is_nan, IsNan, bool, Floating, KILN_FLOAT)
KILN_COMPOSED_1(is_inf, IsInf, bool, Floating, KILN_FLOAT)
KILN_COMPOSED_1(is_finite, IsFinite, bool, Floating, KILN_FLOAT)
KILN_COMPOSED_1(reverse_bits, ReverseBits, T, Integer, KILN_INTEGER)
KILN_COMPOSED_1(byte_swap, ByteSwap, T, Integer, KILN_INTEGER)
KILN_COMPOSED_1(find_first_set, FindFirstSet, T, Integer, KILN_INTEGER)
#undef KILN_COMPOSED_1

#define KILN_COMPOSED_2(NAME, WHAT, CONDITION, SENTENCE)                                            \
  template <class A, class B>                                                                       \
  requires dsl::OneKernelType<A, B>                                                                 \
  auto NAME(A&& a, B&& b, dsl::Where w = dsl::Where::current()) {                                   \
    KILN_ONE_TYPE(dsl::common_t<A KILN_COMMA B>);                                                   \
    using T = dsl::checked_t<dsl::common_t<A, B>>;                                                  \
    KILN_NEEDS(T, CONDITION<T>, "kiln: " #NAME " " SENTENCE);                                       \
    const dsl::Operand operands[] = {Use<T>(std::forward<A>(a), w), Use<T>(std::forward<B>(b), w)}; \
    return Val<T>(dsl::compose(dsl::Composed::WHAT, operands));                                     \
  }
KILN_COMPOSED_2(mod_floor, ModFloor, Number, "needs numbers.")
KILN_COMPOSED_2(add_sat, AddSat, Integer, KILN_INTEGER)
KILN_COMPOSED_2(sub_sat, SubSat, Integer, KILN_INTEGER)
KILN_COMPOSED_2(rotate_left, RotateLeft, Integer, KILN_INTEGER)
KILN_COMPOSED_2(rotate_right, RotateRight, Integer, KILN_INTEGER)
#undef KILN_COMPOSED_2

#define KILN_COMPOSED_3(NAME, WHAT, CONDITION, SENTENCE)                                                                           \
  template <class A, class B, class C>                                                                                             \
  requires dsl::OneKernelType<A, B, C>                                                                                             \
  auto NAME(A&& a, B&& b, C&& c, dsl::Where w = dsl::Where::current()) {                                                           \
    KILN_ONE_TYPE(dsl::common_t<A KILN_COMMA B KILN_COMMA C>);                                                                     \
    using T = dsl::checked_t<dsl::common_t<A, B, C>>;                                                                              \
    KILN_NEEDS(T, CONDITION<T>, "kiln: " #NAME " " SENTENCE);                                                                      \
    const dsl::Operand operands[] = {Use<T>(std::forward<A>(a), w), Use<T>(std::forward<B>(b), w), Use<T>(std::forward<C>(c), w)}; \
    return Val<T>(dsl::compose(dsl::Composed::WHAT, operands));                                                                    \
  }
KILN_COMPOSED_3(clamp, Clamp, Number, "needs numbers.")
KILN_COMPOSED_3(funnel_left, FunnelLeft, Integer, KILN_INTEGER)
KILN_COMPOSED_3(funnel_right, FunnelRight, Integer, KILN_INTEGER)
KILN_COMPOSED_3(dp4a, Dp4a, dsl::Integer32, "needs i32 or u32, whose four bytes it multiplies.")
#undef KILN_COMPOSED_3

#undef KILN_ONE_TYPE
#undef KILN_COMMA
#undef KILN_FLOAT
#undef KILN_INTEGER

}  // namespace kiln
