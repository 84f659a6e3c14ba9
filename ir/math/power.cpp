// pow and powi.
//
// x^y = exp(y log x) with log x as a sum of two (T. Dekker, "A floating-point technique for extending the available precision",
// Numerische Mathematik 18, 1971; products by fused multiply-add), log m = 2 atanh((m - 1) / (m + 1)) by its odd series with minimax
// coefficients of our own. Special values as C, Annex F.
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

constexpr std::uint64_t kSqrtHalf32 = 0x3f3504f3, kSqrtHalf64 = 0x3fe6a09e667f3bcd;

// log m = u + u^3 (1/12 + v p(v)) with u = 2 (m - 1) / (m + 1), v = u^2, for m in [sqrt(1/2), sqrt(2)]: relative errors 2^-38.6, 2^-77.4.
constexpr Split kTwelfth[] = {{0x1.555556p-4, -0x1.555556p-29}, {0x1.5555555555555p-4, 0x1.5555555555555p-58}};
constexpr double kPowLog32[] = {0x1.999998p-7, 0x1.24937cp-9, 0x1.c65582p-12, 0x1.8ef75p-14};
constexpr double kPowLog64[] = {0x1.999999999999ap-7,  0x1.249249249232bp-9,  0x1.c71c71c759cf4p-12, 0x1.745d17199f8fep-14,
                                0x1.3b13c41adb242p-16, 0x1.110c09674757p-18,  0x1.e392cda0aec1p-21,  0x1.8288873f48e7fp-23,
                                0x1.064515b408ecfp-23, -0x1.daec77e662b94p-24};

// log a to about 2^-37 relative in f32, 2^-66 in f64, for finite a > 0.
Pair log_pair(V a) {
  const Format& format_ = format(a);
  const V tiny = a < format_.least_normal;
  const V scaled = a * by_format(a, 0x1p24, 0x1p54);
  const V normal = select(tiny, scaled, a);
  const V bits = normal.as(format_.integer);
  const V e = (bits - bits.bits(by_format(a, kSqrtHalf32, kSqrtHalf64))) >> format_.fraction;
  const V m = (bits - (e << format_.fraction)).as(a.type());
  const V shift = select(tiny, a.like(by_format(a, -24.0, -54.0)), 0.0);
  const V k = to_real(e) + shift;

  // u + u_low = 2 f / (2 + f): the quotient and what it leaves over.
  const V f = m - 1.0;
  const V denominator = m + 1.0;
  const V reciprocal = a.like(1.0) / denominator;
  const V u = (f + f) * reciprocal;
  const V half_left = f - u;
  const V left = half_left + half_left;
  const V u_low = fma(-f, u, left) * reciprocal;

  // v + v_low = (u + u_low)^2.
  const V v = u * u;
  const V v_error = fma(u, u, -v);
  const V v_low = fma(u + u, u_low, v_error);
  // c + c_low = 1/12 + v p(v).
  const Split& twelfth = kTwelfth[wide(a)];
  const V p = polynomial(v, kPowLog32, kPowLog64);
  const V c = fma(v, p, twelfth.high);
  const V rounded = a.like(twelfth.high) - c;
  const V c_low = fma(v, p, rounded) + twelfth.low;
  // w + w_low = v c, then t + t_low = u w.
  const V w = v * c;
  const V w_error = fma(v, c, -w);
  const V w_mixed = fma(v, c_low, w_error);
  const V w_low = fma(v_low, c, w_mixed);
  const V t = u * w;
  const V t_error = fma(u, w, -t);
  const V t_mixed = fma(u, w_low, t_error);
  const V t_low = fma(u_low, w, t_mixed);
  // log m = u + t, |t| < |u|.
  const Pair lm = fast_two_sum(u, t);
  const V lm_low = lm.low + (u_low + t_low);
  // k log 2 in two parts; larger than log m unless k = 0.
  const Pair big = times(k, ln2(a));
  const Pair sum = fast_two_sum(big.high, lm.high);
  const V low = sum.low + (big.low + lm_low);
  return fast_two_sum(sum.high, low);
}

// a^y for a >= 0 without NaN; `y_low` is what y lacks, or null.
V magnitude_of(V a, V y, const V* y_low) {
  const Pair l = log_pair(a);
  const V zero = a == 0.0;
  const V infinite = a == kInf;
  const V at_zero = select(zero, a.like(-kInf), l.high);
  const V log_high = select(infinite, a.like(kInf), at_zero);
  // y log a + low, kept to where the result is neither 0 nor infinity.
  const V product = log_high * y;
  const V error = fma(log_high, y, -product);
  V low = fma(l.low, y, error);
  if (y_low) low = fma(log_high, *y_low, low);
  const V clamped = clamp_exponent(product);
  const V inside = clamped == product;
  const Scaled e = exp_parts(clamped, select(inside, low, 0.0));
  const V magnitude = scale(e.p, e.n);
  return select(a == 1.0, a, magnitude);  // also 1^infinity
}

}  // namespace

V pow(V x, V y) {
  const V a = abs(x);
  const V unit = magnitude_of(a, y, nullptr);
  const V whole = trunc(y) == y;
  const V half = y * 0.5;
  const V half_whole = trunc(half) == half;
  const V odd = not_(half_whole);  // or not whole
  const V odd_whole = whole & odd;
  const V flips = odd_whole & is_negative(x);
  const V signed_result = select(flips, -unit, unit);

  // A finite x below zero to a power that is not whole; any NaN; and what is 1 whatever the other one is.
  const V below_zero = x < 0.0;
  const V finite = a < kInf;
  const V negative_number = below_zero & finite;
  const V impossible = negative_number & not_(whole);
  const V x_number = x == x;
  const V numbers = x_number & (y == y);
  const V checked = select(impossible, x.like(kNan), signed_result);
  const V result = select(numbers, checked, kNan);
  const V x_is_one = x == 1.0;
  const V y_is_zero = y == 0.0;
  const V one = x_is_one | y_is_zero;
  return select(one, x.like(1.0), result);
}

// An exponent beyond 2^24 is not an f32: what the f32 lacks goes along.
V powi(V x, V n) {
  const V y = n.cast(x.type());
  const V a = abs(x);
  V unit = a;
  if (wide(x)) {
    unit = magnitude_of(a, y, nullptr);
  } else {
    const V rest = n - y.cast(Type::I32);
    const V y_low = rest.cast(Type::F32);
    unit = magnitude_of(a, y, &y_low);
  }
  const V odd = (n & n.bits(1)) != 0.0;
  const V flips = odd & is_negative(x);
  const V signed_result = select(flips, -unit, unit);
  const V number = select(x == x, signed_result, x);
  const V none = n == 0.0;
  return select(none, x.like(1.0), number);
}

}  // namespace kiln::ir::math
