// pow and rsqrt.
//
// pow: x^y = exp(y log x) with log x as a sum of two f32 (T. Dekker, "A floating-point technique for extending the available precision",
// Numerische Mathematik 18, 1971; products by fused multiply-add), log m = 2 atanh((m - 1) / (m + 1)) by its odd series with minimax
// coefficients of our own. Special values as C, Annex F.
// rsqrt: one step of Newton's iteration and its next term with an exact residual (P. Markstein, "IA-64 and Elementary Functions", 2000,
// chapter 9) after a rounded first value; that this rounds correctly for every f32 is tested on all mantissas.
#include <limits>

#include "math/functions.h"

namespace kiln::ir::math {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kLn2High = 0x1.62e43p-1, kLn2Low = -0x1.05c61p-29;

// log m = u + u^3 (1/12 + v p(v)) with u = 2 (m - 1) / (m + 1), v = u^2, for m in [sqrt(1/2), sqrt(2)]: relative error 2^-38.6.
constexpr double kTwelfth = 0x1.555556p-4, kTwelfthLow = -0x1.555556p-29;
constexpr double kPowLog[] = {0x1.999998p-7, 0x1.24937cp-9, 0x1.c65582p-12, 0x1.8ef75p-14};

struct Pair {
  V high, low;  // high + low, low below the last place of high
};
// a + b, exact where |a| >= |b|.
Pair fast_two_sum(V a, V b) {
  const V sum = a + b;
  const V back = sum - a;
  return {sum, b - back};
}

// log a to about 2^-37 relative, for finite a > 0.
Pair log_pair(V a) {
  const V tiny = a < 0x1p-126;
  const V scaled = a * 0x1p24;
  const V normal = select(tiny, scaled, a);
  const V bits = normal.as(Type::I32);
  const V e = (bits - bits.bits(0x3f3504f3)) >> 23;  // sqrt(1/2)
  const V m = (bits - (e << 23)).as(Type::F32);
  const V shift = select(tiny, a.like(-24.0), 0.0);
  const V k = e.cast(Type::F32) + shift;

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
  const V p = polynomial(v, kPowLog);
  const V c = fma(v, p, kTwelfth);
  const V rounded = a.like(kTwelfth) - c;
  const V c_low = fma(v, p, rounded) + kTwelfthLow;
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
  const V big = k * kLn2High;
  const V big_error = fma(k, kLn2High, -big);
  const V big_low = fma(k, kLn2Low, big_error);
  const Pair sum = fast_two_sum(big, lm.high);
  const V low = sum.low + (big_low + lm_low);
  return fast_two_sum(sum.high, low);
}

}  // namespace

V pow32(V x, V y) {
  const V a = abs(x);
  Pair l = log_pair(a);
  const V zero = a == 0.0;
  const V infinite = a == kInf;
  const V at_zero = select(zero, x.like(-kInf), l.high);
  const V log_high = select(infinite, x.like(kInf), at_zero);

  // y log x + low, kept to where the result is neither 0 nor infinity.
  const V product = log_high * y;
  const V error = fma(log_high, y, -product);
  const V low = fma(l.low, y, error);
  const V below = select(product < 100.0, product, 100.0);
  const V clamped = select(below > -110.0, below, -110.0);
  const V inside = clamped == product;
  const V magnitude = exp_core(clamped, select(inside, low, 0.0));

  const V whole = trunc(y) == y;
  const V half = y * 0.5;
  const V half_whole = trunc(half) == half;
  const V odd = half_whole.unary(Opcode::Not);  // or not whole
  const V x_bits = x.as(Type::U32);
  const V negative = (x_bits & x_bits.bits(0x80000000u)) != 0.0;
  const V unit = select(a == 1.0, a, magnitude);  // also 1^infinity
  const V odd_whole = whole & odd;
  const V flips = odd_whole & negative;
  const V signed_result = select(flips, -unit, unit);

  // A finite x below zero to a power that is not whole; any NaN; and what is 1 whatever the other one is.
  const V below_zero = x < 0.0;
  const V finite = a < kInf;
  const V negative_number = below_zero & finite;
  const V impossible = negative_number & whole.unary(Opcode::Not);
  const V x_number = x == x;
  const V numbers = x_number & (y == y);
  const V checked = select(impossible, x.like(kNan), signed_result);
  const V result = select(numbers, checked, kNan);
  const V x_is_one = x == 1.0;
  const V y_is_zero = y == 0.0;
  const V one = x_is_one | y_is_zero;
  return select(one, x.like(1.0), result);
}

V rsqrt32(V x) {
  const V root = sqrt(x);
  const V y = x.like(1.0) / root;
  // e = x y^2 - 1 to far beyond f32, then y (1 - e/2 + 3 e^2 / 8). Without the last term, or with the products in another order, one f32
  // in 2^24 comes out wrong.
  const V h = x * y;
  const V h_low = fma(x, y, -h);
  const V r = fma(h, y, -1.0);
  const V residual = fma(h_low, y, r);
  const V factor = fma(residual, 0.375, x.like(-0.5));
  const V scaled = y * residual;
  const V better = fma(scaled, factor, y);
  // 0 and infinity give infinity and 0, and there is nothing to correct.
  const V normal = abs(x) < kInf;
  const V positive = x > 0.0;
  return select(normal & positive, better, y);
}

}  // namespace kiln::ir::math
