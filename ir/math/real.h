// What the functions share: the two float formats side by side, powers of two, and sums of two numbers. Private to ir/math.
//
// Every function is one definition for f32 and f64. A constant or polynomial that depends on the format is given for both: the narrow one
// first.
#pragma once
#include <limits>

#include "kiln/ir/expr.h"

namespace kiln::ir::math {

using V = Expr;

inline constexpr double kInf = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Format {
  Type integer, bits;  // of the same width, signed and unsigned
  unsigned fraction;   // bits of it
  int bias;
  double least_normal;
  std::uint64_t sign;
};
inline constexpr Format kNarrow{Type::I32, Type::U32, 23, 127, 0x1p-126, 0x80000000u};
inline constexpr Format kWide{Type::I64, Type::U64, 52, 1023, 0x1p-1022, 0x8000000000000000u};

inline bool wide(V x) { return x.type() == Type::F64; }
inline const Format& format(V x) { return wide(x) ? kWide : kNarrow; }
template <class T>
const T& by_format(V x, const T& narrow, const T& wide_one) {
  return wide(x) ? wide_one : narrow;
}
template <std::size_t N, std::size_t M>
V polynomial(V x, const double (&narrow)[N], const double (&wide_one)[M]) {
  return wide(x) ? polynomial(x, wide_one) : polynomial(x, narrow);
}

// A constant as the sum of two numbers of the format.
struct Split {
  double high, low;
};
inline constexpr Split kLn2[] = {{0x1.62e43p-1, -0x1.05c61p-29}, {0x1.62e42fefa39efp-1, 0x1.abc9e3b39803fp-56}};
inline const Split& ln2(V x) { return kLn2[wide(x)]; }

// --- powers of two ---------------------------------------------------------------------------------------------------------
// In f64 whole numbers travel through the low bits of 1.5 2^52 + n, since a conversion to a 64-bit integer is dear on most machines.
inline constexpr double kMagic = 0x1.8p52;
inline constexpr std::uint64_t kMagicBits = 0x4338000000000000u;

// A whole number, |k| < 2^31, as an integer of the format's width, and back.
inline V to_integer(V k) {
  if (!wide(k)) return k.cast(Type::I32);
  const V n = (k + kMagic).as(Type::I64);
  return n - n.bits(kMagicBits);
}
inline V to_real(V n) {
  if (n.type() == Type::I32) return n.cast(Type::F32);
  const V magic = n.bits(kMagicBits);
  return (n + magic).as(Type::F64) - kMagic;
}
// 2^n for an integer n of the format's width in the range of normal numbers.
inline V two_to(V n) {
  const bool f32 = n.type() == Type::I32;
  const Format& f = f32 ? kNarrow : kWide;
  return ((n + f.bias) << f.fraction).as(f32 ? Type::F32 : Type::F64);
}
// A whole number n as the low bits of magic(x) + n, as which rounding makes it: nearest(x, factor) is x times the factor, rounded. Good for
// |n| < 230 in f32, < 1600 in f64.
struct Exponent {
  V biased;
};
inline double magic(V x) { return by_format(x, 0x1.8p23 + 2 * 127, 0x1.8p52 + 2 * 1023); }
inline Exponent nearest(V x, double factor) { return {factor == 1 ? x + magic(x) : fma(x, factor, x.like(magic(x)))}; }
inline V value_of(Exponent n) { return n.biased - magic(n.biased); }
inline Exponent operator-(Exponent n, double whole) { return {n.biased - whole}; }
// 2^(n + more) in the range of normal numbers.
inline V two_to(Exponent n, int more = 0) {
  const Format& f = format(n.biased);
  return ((n.biased.as(f.bits) - (f.bias - more)) << f.fraction).as(n.biased.type());
}
// p 2^n, rounded once: two factors, since 2^n itself may be out of range; the first product is exact. The bias that is twice that of an
// exponent makes both of them right when it is halved.
inline V scale(V p, Exponent n) {
  const Format& f = format(p);
  const V bits = n.biased.as(f.bits);
  const V half = (bits << (f.fraction - 1)) & bits.bits(~std::uint64_t{0} << f.fraction);
  const V other = (bits << f.fraction) - half;
  const V first = p * half.as(p.type());
  return first * other.as(p.type());
}

inline V reciprocal(V x) { return x.like(1.0) / x; }
inline V not_(V c) { return c.unary(Opcode::Not); }
inline V sign_bit(V x) {
  const V bits = x.as(format(x).bits);
  return bits & bits.bits(format(x).sign);
}
inline V is_negative(V x) { return sign_bit(x) != 0.0; }

// --- sums of two (T. Dekker, "A floating-point technique for extending the available precision", Numerische Mathematik 18, 1971) -------
struct Pair {
  V high, low;  // high + low, low below the last place of high
};
// a + b, exact where |a| >= |b| or a = 0.
inline Pair fast_two_sum(V a, V b) {
  const V sum = a + b;
  const V back = sum - a;
  return {sum, b - back};
}
// a + b, exact (D. Knuth, "The Art of Computer Programming", volume 2, section 4.2.2).
inline Pair two_sum(V a, V b) {
  const V sum = a + b;
  const V b_part = sum - a;
  const V a_part = sum - b_part;
  const V b_left = b - b_part;
  return {sum, (a - a_part) + b_left};
}
// a b, exact but for underflow.
inline Pair two_product(V a, V b) {
  const V product = a * b;
  return {product, fma(a, b, -product)};
}
// x c to twice the precision of the format.
inline Pair times(V x, const Split& c) {
  const Pair p = two_product(x, x.like(c.high));
  return {p.high, fma(x, c.low, p.low)};
}
// sqrt(a + a_low) for a > 0 to twice the precision; sqrt(a), 0 where a is 0.
inline Pair sqrt_pair(V a, V a_low) {
  const V root = sqrt(a);
  const V left = fma(-root, root, a) + a_low;
  const V low = left / (root + root);
  return {root, select(a > 0.0, low, 0.0)};
}

}  // namespace kiln::ir::math
