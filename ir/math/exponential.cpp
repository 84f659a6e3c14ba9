// exp, exp2, exp10 and expm1.
//
// Method: argument reduction by multiples of log 2 with a two-part constant (W. J. Cody and W. Waite, "Software Manual for the Elementary
// Functions", 1980, chapter 6), minimax polynomials by Remez' exchange with coefficients rounded one after the other (J.-M. Muller,
// "Elementary Functions", 3rd edition, chapters 3 and 4), fused multiply-adds throughout. 2^x and 10^x have polynomials of their own in
// f32; in f64 they are e^(x log b) with the product as a sum of two. The coefficients are our own.
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

constexpr double kLog2e32 = 0x1.715476p+0, kLog2e64 = 0x1.71547652b82fep+0;
constexpr Split kLn10{0x1.26bb1bbb55516p+1, -0x1.f48ad494ea3e9p-53};  // for f64

// e^r = 1 + r + r^2 (half + r q(r)) for |r| <= 0.5 log 2: relative errors 2^-27.6, 2^-63.6.
constexpr double kHalf32 = 0x1.fffffcp-2, kHalf64 = 0.5;
constexpr double kExp32[] = {0x1.55548ap-3, 0x1.555916p-5, 0x1.123fc4p-7, 0x1.6a1ad6p-10};
constexpr double kExp64[] = {0x1.555555555555dp-3,  0x1.555555555556bp-5,  0x1.111111110e58ap-7,  0x1.6c16c16c0b573p-10,
                             0x1.a01a01b5c5cd4p-13, 0x1.a01a01df5082cp-16, 0x1.71ddeb46d5943p-19, 0x1.27e4665e62fedp-22,
                             0x1.af73152f1510dp-26, 0x1.201b2748d67fdp-29};

V half_of(V x) { return x.like(by_format(x, kHalf32, kHalf64)); }

// 2^f for |f| <= 1/2 and 10^f for |f| <= 0.152, both with relative error 2^-28.
constexpr double kExp2[] = {1, 0x1.62e43p-1, 0x1.ebfbd8p-3, 0x1.c6af76p-5, 0x1.3b30ap-7, 0x1.5f0b82p-10, 0x1.3fa206p-13};
constexpr double kExp10[] = {1, 0x1.26bb1cp+1, 0x1.535248p+1, 0x1.046f94p+1, 0x1.2bdbc2p+0, 0x1.15716ep-1, 0x1.a4c7c2p-3};
constexpr double kLog2of10 = 0x1.a934fp+1;
constexpr Split kLog10of2{0x1.344136p-2, -0x1.ec10cp-27};

Exponent whole_of(V x) { return nearest(x, by_format(x, kLog2e32, kLog2e64)); }

Scaled of_reduced(V r, Exponent n) {
  const V inner = polynomial(r, kExp32, kExp64);
  const V q = fma(inner, r, half_of(r));
  const V p = fma(q, r, 1.0);
  return {fma(p, r, 1.0), n};
}

V scaled(const Scaled& e) { return scale(e.p, e.n); }

// b^x in f64, where infinity and NaN are not to meet the exact products.
V power_of(V x, const Split& log_b) {
  const V clamped = clamp_exponent(x);  // the product is clamped once more, for 10^x
  const Pair product = times(clamped, log_b);
  const V top = clamp_exponent(product.high);
  const V inside = top == product.high;
  return scaled(exp_parts(top, select(inside, product.low, 0.0)));
}

}  // namespace

Scaled exp_parts(V x) {
  const Exponent n = whole_of(x);
  const V k = value_of(n);
  const V high = fma(k, -ln2(x).high, x);
  return of_reduced(fma(k, -ln2(x).low, high), n);
}

Scaled exp_parts(V x, V x_low) {
  const Exponent n = whole_of(x);
  const V k = value_of(n);
  const V high = fma(k, -ln2(x).high, x);
  const V low = fma(k, -ln2(x).low, x_low);
  return of_reduced(high + low, n);
}

ScaledPair exp_pair(Pair x) {
  const Exponent n = whole_of(x.high);
  const V k = value_of(n);
  const V high = fma(k, -ln2(k).high, x.high);
  const V low = fma(k, -ln2(k).low, x.low);
  const Pair r = fast_two_sum(high, low);
  const V inner = polynomial(r.high, kExp32, kExp64);
  const V second = fma(inner, r.high, half_of(inner));
  const V q = fma(second, r.high, 1.0);
  const V p = fma(q, r.high, 1.0);
  const V rounding = fma(q, r.high, p.like(1.0) - p);
  return {{p, rounding + r.low}, n};
}

Scaled exp2_parts(V x) {
  const Exponent n = nearest(x, 1.0);
  return {polynomial(x - value_of(n), kExp2), n};
}

Scaled exp2_parts(V x, V y) {
  const Exponent n{fma(x, y, x.like(magic(x)))};
  const V minus_k = x.like(magic(x)) - n.biased;
  return {polynomial(fma(x, y, minus_k), kExp2), n};
}

V clamp_exponent(V x) { return at_least(at_most(x, by_format(x, 130.0, 1100.0)), -by_format(x, 160.0, 1100.0)); }

// Beyond the clamps the result is infinity or rounds to zero.
V exp(V x) { return scaled(exp_parts(clamp_exponent(x))); }

V exp2(V x) {
  if (wide(x)) return power_of(x, ln2(x));
  const Scaled e = exp2_parts(clamp_exponent(x));
  return scale(e.p, e.n);
}

V exp10(V x) {
  if (wide(x)) return power_of(x, kLn10);
  const V c = at_least(at_most(x, 39.0), -47.0);
  const Exponent n = nearest(c, kLog2of10);
  const V k = value_of(n);
  const V high = fma(k, -kLog10of2.high, c);
  const V f = fma(k, -kLog10of2.low, high);
  return scale(polynomial(f, kExp10), n);
}

// 2^k e^r - 1 = (2^k - 1) + 2^k r + 2^k (r^2 q(r)) with the sum of the first two exact; halved until the end, since 2^k may be out of
// range.
V expm1(V x) {
  const V c = at_least(at_most(x, by_format(x, 89.0, 709.9)), by_format(x, -20.0, -40.0));
  const Exponent n = whole_of(c);
  const V k = value_of(n);
  const V high = fma(k, -ln2(x).high, c);
  const V r_low = k * -ln2(x).low;
  const Pair r = fast_two_sum(high, r_low);
  const V inner = polynomial(r.high, kExp32, kExp64);
  const Pair square = two_product(r.high, r.high);
  const V half = half_of(x);
  const V square_low = fma(square.low, half, r.low);
  const V third = fma(square.high * r.high, inner, square_low);
  const V rest = fma(square.high, half, third);
  const V t = two_to(n, -1);
  const Pair base = two_sum(t, x.like(-0.5));
  const Pair sum = fast_two_sum(base.high, t * r.high);
  const V low = fma(t, rest, sum.low + base.low);
  const V halved = sum.high + low;
  const V result = halved + halved;
  const V small = abs(x) < by_format(x, 0x1p-25, 0x1p-54);  // x itself, -0 too, and subnormal numbers would not halve
  const V same = small | (x != x);
  return select(same, x, result);
}

}  // namespace kiln::ir::math
