// sinh, cosh, tanh and their inverses.
//
// Method: by e^x and the logarithm as in Cody and Waite, "Software Manual for the Elementary Functions", chapters 9 and 13, with minimax
// polynomials of our own (Remez) where that cancels; the inverses by W. Kahan, "Branch cuts for complex elementary functions", 1987, on
// sums of two.
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

// tanh x = x + x^3 p(x^2) for |x| <= 0.625: relative errors 2^-26.8, 2^-61.2.
constexpr double kTanh32[] = {-0x1.555532p-2, 0x1.110726p-3, -0x1.b83c5ap-5, 0x1.5226a4p-6, -0x1.75e1fcp-8};
constexpr double kTanh64[] = {-0x1.5555555555552p-2,  0x1.1111111110c52p-3,  -0x1.ba1ba1b9d1969p-5,  0x1.664f4870c3413p-6,
                              -0x1.226e32cfa1c8fp-7,  0x1.d6d35a3aba769p-9,  -0x1.7d9c333cd82bdp-10, 0x1.350b89674d101p-11,
                              -0x1.f11365fa5cf0dp-13, 0x1.801be9743b4cfp-14, -0x1.fac7352de368dp-16, 0x1.960876ccacb0fp-18};
// sinh x = x + x^3 p(x^2) for |x| <= 1: relative errors 2^-31.6, 2^-63.3.
constexpr double kSinh32[] = {0x1.555556p-3, 0x1.1110ep-7, 0x1.a022bcp-13, 0x1.756c2p-19};
constexpr double kSinh64[] = {0x1.5555555555555p-3,  0x1.11111111111cp-7,   0x1.a01a019ffb70dp-13,
                              0x1.71de3a7eab5fbp-19, 0x1.ae6419018f89bp-26, 0x1.6159bd0c61785p-33,
                              0x1.78d4f35bc00fep-41, 0x1.e94112f0d15c5p-45, -0x1.a05c1a0247ecp-47};

// e^a / 2, also where e^a is out of range.
V half_exp(V a) {
  const Scaled e = exp_parts(clamp_exponent(a));
  return scale(e.p, e.n - 1.0);
}

// (p(z) z) a + a.
template <std::size_t N, std::size_t M>
V odd(V a, const double (&narrow)[N], const double (&wide_one)[M]) {
  const V z = a * a;
  const V p = polynomial(z, narrow, wide_one);
  return fma(p * z, a, a);
}

}  // namespace

V sinh(V x) {
  const V a = abs(x);
  const V small = odd(a, kSinh32, kSinh64);
  const V half = half_exp(a);
  const V inverse = half.like(0.25) / half;
  const V large = half - inverse;
  const V magnitude = select(a < 1.0, small, large);
  return copysign(magnitude, x);
}

V cosh(V x) {
  const V half = half_exp(abs(x));
  const V inverse = half.like(0.25) / half;
  return half + inverse;
}

// tanh |x| = 1 - 2 / (e^(2|x|) + 1), and a polynomial where that cancels.
V tanh(V x) {
  const V a = abs(x);
  const V small = odd(a, kTanh32, kTanh64);
  const V top = at_most(a, by_format(x, 10.0, 20.0));  // the result is 1 from 9.02, 19.07 on
  const Scaled e = exp_parts(top + top);
  const V sum = fma(e.p, two_to(e.n), 1.0);
  const V rest = a.like(2.0) / sum;
  const V large = a.like(1.0) - rest;
  const V magnitude = select(a < 0.625, small, large);
  return copysign(magnitude, x);
}

// log(a + sqrt(a^2 + 1)); log 2a from where the square may overflow.
V asinh(V x) {
  const double far = by_format(x, 0x1p30, 0x1p60);
  const V a = abs(x);
  const V big = a > far;
  const V near = select(big, a.like(1.0), a);
  const Pair square = two_product(near, near);
  const Pair radicand = two_sum(square.high, near.like(1.0));
  const Pair root = sqrt_pair(radicand.high, radicand.low + square.low);
  const Pair sum = two_sum(root.high, near);
  const V low = sum.low + root.low;
  const V s = select(big, a, sum.high);
  const V s_low = select(big, a.like(0.0), low);
  const V finite = select(a < kInf, s, 1.0);
  const V r = log_of_sum(finite, s_low, select(big, a.like(1.0), 0.0));
  const V result = copysign(r, x);
  const V small = a < by_format(x, 0x1p-13, 0x1p-27);  // x itself
  const V normal = a < kInf;
  return select(normal & not_(small), result, x);
}

// log(x + sqrt(x^2 - 1)).
V acosh(V x) {
  const double far = by_format(x, 0x1p30, 0x1p60);
  const V in_range = select(x >= 1.0, x, 1.0);
  const V big = in_range > far;
  const V near = select(big, x.like(1.0), in_range);
  const Pair square = two_product(near, near);
  const Pair radicand = two_sum(square.high, near.like(-1.0));
  const Pair exact = fast_two_sum(radicand.high, radicand.low + square.low);
  const Pair root = sqrt_pair(exact.high, exact.low);
  const Pair sum = two_sum(near, root.high);
  const V low = sum.low + root.low;
  const V s = select(big, in_range, sum.high);
  const V s_low = select(big, x.like(0.0), low);
  const V finite = select(s < kInf, s, 1.0);
  const V r = log_of_sum(finite, s_low, select(big, x.like(1.0), 0.0));
  const V defined = select(x >= 1.0, r, kNan);
  return select(x == kInf, x, defined);
}

// log(1 + 2a / (1 - a)) / 2.
V atanh(V x) {
  const V a = abs(x);
  const V in_range = select(a < 1.0, a, 0.5);
  const V one = a.like(1.0);
  const Pair d = fast_two_sum(one, -in_range);
  const V inverse = reciprocal(d.high);
  const V twice = in_range + in_range;
  const V q = twice * inverse;
  const V left = fma(-q, d.high, twice);
  const V q_low = fma(-q, d.low, left) * inverse;
  const Pair s = two_sum(one, q);
  const V low = s.low + q_low;
  const V r = log_of_sum(s.high, low, a.like(0.0));
  const V is_one = a == 1.0;
  const V edge = select(is_one, a.like(kInf), kNan);
  const V half = r * 0.5;
  const V magnitude = select(a < 1.0, half, edge);
  const V result = copysign(magnitude, x);
  // Below, a itself: 2a may be subnormal where a is, and would not halve exactly.
  return select(a < by_format(x, 0x1p-14, 0x1p-28), x, result);
}

}  // namespace kiln::ir::math
