// erf and erfc.
//
// Method: a minimax polynomial of x^2 near zero; beyond, for erf of f32 2^p(x) with a polynomial for log2 erfc x, and for the others erfc x
// = e^(-x^2) P((x - c) / (x + c)) / (x + c) with a polynomial (M. Shepherd and J. Laframboise, "Chebyshev approximation of (1 + 2x)
// exp(x^2) erfc x in 0 <= x < infinity", Mathematics of Computation 36, 1981). The coefficients are our own (Remez).
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

// erf x = x + x p(x^2) for |x| <= 3/4: relative errors 2^-29.2, 2^-56.2.
constexpr double kErf32[] = {0x1.06eba8p-3, -0x1.81273ap-2, 0x1.ce2acep-4, -0x1.b7a75cp-6, 0x1.4f18b2p-8, -0x1.6140c4p-11};
constexpr double kErf64[] = {0x1.06eba8214db69p-3,  -0x1.812746b037a31p-2,  0x1.ce2f21a046b84p-4,  -0x1.b82ce313da724p-6,
                             0x1.565bcd46e5cfbp-8,  -0x1.c02dbeb0fb946p-11, 0x1.f9a4591fd85e4p-14, -0x1.f4e63897a3fe7p-17,
                             0x1.ba8c08c89303fp-20, -0x1.600a99c3576cdp-23, 0x1.c050338e9b196p-27};
// (x + c) e^(x^2) erfc x = p((x - c) / (x + c)) from 0.74 on: with c = 3 up to 10.1 for f32, with c = 4 up to 27.3 for f64: relative errors
// 2^-26.2, and 2^-56.9 with the low part of the first coefficient.
constexpr Split kErfcFirst[] = {{0x1.12f21ep+0, 0}, {0x1.18932bf08e154p+0, 0x1.10eeb43b5cd81p-54}};
constexpr double kErfc32[] = {-0x1.c44c48p-1,  0x1.2e3266p-1, -0x1.3deb22p-2,  0x1.e9988p-4,   -0x1.b789d6p-6,
                              -0x1.437a2cp-10, 0x1.8d90bep-9, -0x1.ec1fb8p-12, -0x1.15534ap-12};
constexpr double kErfc64[] = {-0x1.f3fe31ecb49bfp-1,  0x1.8be202d26c6ffp-1,   -0x1.14eacb1ad0361p-1, 0x1.52cac2371052ep-2,
                              -0x1.645fd8a4babp-3,    0x1.38dbd2c8c737dp-4,   -0x1.b00c052cf1acap-6, 0x1.908f473c1fc33p-8,
                              -0x1.269b5076f29adp-12, -0x1.dd285149f14f9p-12, 0x1.72cd95e7c2e88p-13, -0x1.e7cb4eb3762a3p-19,
                              -0x1.3c6d0906c5baap-16, 0x1.3adb86670f4a6p-18,  0x1.7e186fc359ff3p-20, -0x1.c363e6478f346p-21,
                              -0x1.416f84c0278fep-24, 0x1.f934a18063b4fp-24,  0x1.95d310174f16ep-31, -0x1.85453e085fd91p-27};
constexpr double kTwoOverRootPi = 0x1.20dd750429b6dp+0;

// log2 erfc x = -2 + u p(u) with u = scale x - shift for x in [0.75, 4]: error of erfc 2^-30. erfc is 1/4 where u is 0, so that little is
// rounded where erfc is large.
constexpr double kLogErfc32[] = {-0x1.ae1d5ap1,  -0x1.2e054p0,   -0x1.262cbcp-4, 0x1.1c1b66p-6,
                                 -0x1.b027c2p-9, 0x1.ad24c6p-12, -0x1.6d4008p-16};
constexpr double kLogErfcScale = 0x1.fff502p-1, kLogErfcShift = 0x1.a06fap-1;

// erf a / a - 1 for 0 <= a <= 3/4.
V near_zero(V a) { return polynomial(a * a, kErf32, kErf64); }

// erfc a for a >= 3/4. What is rounded on the way goes along as low parts: of d = x + c, of t = (x - c) / d, of the polynomial, of
// e^(-x^2), and of the products.
V complement(V a) {
  const double c = by_format(a, 3.0, 4.0), last = by_format(a, 10.1, 27.3);
  const V x = at_most(a, last);
  const Pair d = two_sum(x, x.like(c));
  const Pair n = two_sum(x, x.like(-c));
  const V u = reciprocal(d.high);
  const V u_left = fma(-u, d.high, 1.0);
  const V u_error = fma(-u, d.low, u_left);  // 1/d = u (1 + u_error)
  const V t = n.high * u;
  const V t_left = fma(-t, d.high, n.high);
  const V t_rest = fma(-t, d.low, n.low);
  const V t_low = (t_left + t_rest) * u;

  const Split& first = kErfcFirst[wide(a)];
  const V inner = polynomial(t, kErfc32, kErfc64);
  const V p = fma(inner, t, first.high);
  const V p_rounding = fma(inner, t, x.like(first.high) - p);
  // The derivative of p to t from that of g(x) = e^(x^2) erfc x, which is 2 x g - 2 / sqrt(pi).
  const V rough = p * u;
  const V derivative = fma(x + x, rough, -kTwoOverRootPi);
  const V change = fma(d.high, derivative, rough);
  const V slope = change * (d.high * d.high) * (0.5 / c);
  const V p_low = fma(slope, t_low, p_rounding + first.low);

  const Pair square = two_product(x, x);
  const ScaledPair e = exp_pair({-square.high, -square.low});
  // e^(-x^2) p / d.
  const Pair g = two_product(p, u);
  const V g_mixed = fma(p, u_error, p_low);
  const V g_low = fma(u, g_mixed, g.low);
  const Pair product = two_product(e.p.high, g.high);
  const V product_mixed = fma(e.p.high, g_low, product.low);
  const V product_low = fma(e.p.low, g.high, product_mixed);
  return scale(product.high + product_low, e.n);
}

// erfc a for a >= 3/4 in f32, good enough to be taken from 1, which is the result from 4 on.
V short_complement(V a) {
  const V top = at_most(a, 4.0);
  const V u = fma(top, kLogErfcScale, a.like(-kLogErfcShift));
  const Scaled e = exp2_parts(polynomial(u, kLogErfc32), u);
  return e.p * two_to(e.n, -2);
}

}  // namespace

V erf(V x) {
  const V a = abs(x);
  const V small = fma(near_zero(a), a, a);
  const V rest = wide(x) ? complement(at_least(a, 0.75)) : short_complement(a);
  const V magnitude = select(a < 0.75, small, x.like(1.0) - rest);
  return copysign(magnitude, x);
}

V erfc(V x) {
  const V a = abs(x);
  const V p = near_zero(a);
  const V minus = -x;
  const Pair rest = fast_two_sum(x.like(1.0), minus);
  const V small = rest.high + fma(-p, x, rest.low);
  const V c = complement(at_least(a, 0.75));
  const V large = select(is_negative(x), x.like(2.0) - c, c);
  return select(a < 0.75, small, large);
}

}  // namespace kiln::ir::math
