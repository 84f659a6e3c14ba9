// exp, tanh and log.
//
// Method: argument reduction by multiples of log 2 with a two-part constant (W. J. Cody and W. Waite, "Software Manual for the Elementary
// Functions", 1980, chapters 5, 6 and 13), minimax polynomials by Remez' exchange with coefficients rounded to f32 one after the other
// (J.-M. Muller, "Elementary Functions", 3rd edition, chapters 3 and 4), fused multiply-adds throughout. The coefficients are our own.
#include <limits>

#include "math/functions.h"

namespace kiln::ir::math {
namespace {

constexpr double kLog2e = 0x1.715476p+0;
constexpr double kLn2High = 0x1.62e43p-1, kLn2Low = -0x1.05c61p-29;  // log 2 = high + low, each an f32
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// e^r = 1 + r + r^2 q(r) for |r| <= 0.5 log 2: relative error 2^-27.6.
constexpr double kExp[] = {0x1.fffffcp-2, 0x1.55548ap-3, 0x1.555916p-5, 0x1.123fc4p-7, 0x1.6a1ad6p-10};
// log(1 + f) = f + f^2 q(f) for |f| <= 1/3: relative error 2^-26.4.
constexpr double kLog[] = {-0.5,         0x1.555502p-2, -0x1.fffe8p-3, 0x1.99d1fp-3,  -0x1.55a75ep-3,
                           0x1.1ebeap-3, -0x1.f25d8p-4, 0x1.1ed092p-3, -0x1.09329ap-3};
// tanh x = x + x^3 p(x^2) for |x| <= 0.625: relative error 2^-26.8.
constexpr double kTanh[] = {-0x1.555532p-2, 0x1.110726p-3, -0x1.b83c5ap-5, 0x1.5226a4p-6, -0x1.75e1fcp-8};

struct Reduced {
  V r, k;  // x = k log 2 + r, k a whole number
};
Reduced reduce(V x) {
  const V k = round_even(x * kLog2e);
  const V high = fma(k, -kLn2High, x);
  return {fma(k, -kLn2Low, high), k};
}

// 2^k p for -150 <= k <= 130, rounded once: two factors, since 2^k itself may be out of range; the first product is exact.
V scale(V p, V k) {
  const V n = k.cast(Type::I32);
  const V first = n >> 1;
  const V second = n - first;
  const V s1 = ((first + 127) << 23).as(Type::F32);
  const V s2 = ((second + 127) << 23).as(Type::F32);
  return p * s1 * s2;
}

V exp_of_reduced(const Reduced& a) {
  const V q = polynomial(a.r, kExp);
  const V p = fma(q, a.r, 1.0);
  return scale(fma(p, a.r, 1.0), a.k);
}

}  // namespace

V exp_core(V x) { return exp_of_reduced(reduce(x)); }

V exp_core(V x, V x_low) {
  const V k = round_even(x * kLog2e);
  const V high = fma(k, -kLn2High, x);
  const V low = fma(k, -kLn2Low, x_low);
  return exp_of_reduced({high + low, k});
}

// Beyond the clamps the result is infinity or rounds to zero; NaN fails every comparison and comes back as it is.
V exp32(V x) {
  const V below = select(x < 89.0, x, 89.0);
  const V clamped = select(below > -104.0, below, -104.0);
  const V e = exp_core(clamped);
  return select(x == x, e, x);
}

// tanh |x| = 1 - 2 / (e^(2|x|) + 1), and a polynomial where that cancels.
V tanh32(V x) {
  const V a = abs(x);
  const V z = x * x;
  const V p = polynomial(z, kTanh);
  const V small = fma(p * z, a, a);
  const V top = select(a < 10.0, a, 10.0);  // 1 in f32 from 9.02 on
  const V e = exp_core(top + top) + 1.0;
  const V rest = a.like(2.0) / e;
  const V large = a.like(1.0) - rest;
  const V magnitude = select(a < 0.625, small, large);
  const V result = copysign(magnitude, x);
  return select(x == x, result, x);
}

// x = 2^e m with m in [2/3, 4/3), log x = e log 2 + log m.
V log32(V x) {
  const V tiny = x < 0x1p-126;
  const V scaled = x * 0x1p23;
  const V normal = select(tiny, scaled, x);
  const V bits = normal.as(Type::I32);
  const V e = (bits - bits.bits(0x3f2aaaab)) >> 23;  // 2/3
  const V m = (bits - (e << 23)).as(Type::F32);
  const V f = m - 1.0;
  const V q = polynomial(f, kLog);
  const V square = f * f;
  const V log_m = fma(q, square, f);
  const V shift = select(tiny, x.like(-23.0), 0.0);
  const V exponent = e.cast(Type::F32) + shift;
  const V r = fma(exponent, kLn2High, log_m);
  const V finite = select(x < kInf, r, x);  // infinity stays
  const V is_zero = x == 0.0;
  const V zero = select(is_zero, x.like(-kInf), kNan);  // NaN: below zero, and NaN itself
  return select(x > 0.0, finite, zero);
}

}  // namespace kiln::ir::math
