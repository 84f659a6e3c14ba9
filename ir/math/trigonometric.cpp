// sin, cos and tan of what radians.cpp leaves, by minimax polynomials (Cody and Waite, "Software Manual for the Elementary Functions",
// chapters 8 and 9). The coefficients are our own (Remez).
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

// sin r = r + r^3 s(r^2) and cos r = 1 - r^2/2 + r^4 c(r^2) for |r| <= 0.8: relative errors 2^-26.8 and 2^-30.2, 2^-63.2 and 2^-68.9.
constexpr double kSin32[] = {-0x1.555544p-3, 0x1.11067ap-7, -0x1.990254p-13};
constexpr double kCos32[] = {0x1.555548p-5, -0x1.6c0b62p-10, 0x1.99afa8p-16};
constexpr double kSin64[] = {-0x1.5555555555555p-3,  0x1.111111111106ep-7,  -0x1.a01a019fffee3p-13, 0x1.71de3a368097ep-19,
                             -0x1.ae6430df78aa3p-26, 0x1.610d16b17d79ap-33, -0x1.a1d6b1a2bdf36p-41};
constexpr double kCos64[] = {0x1.5555555555555p-5,  -0x1.6c16c16c16b38p-10, 0x1.a01a019ffeb08p-16, -0x1.27e4fb5cfdb9bp-22,
                             0x1.1eed736902f81p-29, -0x1.937964ad87fc9p-37, 0x1.a034352be0286p-45};
// tan r = r + r^3 t(r^2) for |r| <= 0.79: relative errors 2^-29.3, 2^-59.6.
constexpr double kTan32[] = {0x1.555562p-2, 0x1.110d1ap-3, 0x1.baf0bap-5, 0x1.5bd57ep-6, 0x1.678a5p-7, -0x1.645aa4p-14, 0x1.247bc6p-8};
constexpr double kTan64[] = {0x1.555555555555fp-2,  0x1.111111111047bp-3,   0x1.ba1ba1bad3157p-5,  0x1.664f48589cebdp-6,
                             0x1.226e3b1b0172p-7,   0x1.d6d2cdc04604p-9,    0x1.7db309208a818p-10, 0x1.34ad0ee731d4bp-11,
                             0x1.000450b869ed4p-12, 0x1.5a0dba033ec2ap-14,  0x1.22193bc4ba758p-14, -0x1.d7c257e185189p-16,
                             0x1.a990027f044f5p-15, -0x1.a8cf0f7d55615p-16, 0x1.50ad070cf2ff6p-17};

// sin(|x| + turns pi/2) with the sign bit of `sign` applied.
V sin_of(V x, unsigned turns, V sign) {
  const Reduced r = reduce_by_half_pi(abs(x));
  const V h = r.high;
  const V z = h * h;
  const V cp = polynomial(z, kCos32, kCos64);
  // 1 - z/2 loses bits; what it loses is added back with the rest.
  const V w = fma(z, -0.5, z.like(1.0));
  const V lost = fma(z, -0.5, z.like(1.0) - w);
  const V shifted = fma(-h, r.low, lost);
  const V c = w + fma(z * z, cp, shifted);
  const V sp = polynomial(z, kSin32, kSin64);
  const V s = h + fma(h * z, sp, r.low);
  const V q = turns == 0 ? r.quadrant : r.quadrant + turns;
  const V odd = (q & q.bits(1)) != 0.0;
  const V value = select(odd, c, s).as(format(x).bits);
  const V flip = (q & q.bits(2)) << (format(x).fraction + (wide(x) ? 10 : 7));  // bit 1 to the sign bit
  return (value ^ (flip ^ sign)).as(x.type());
}

}  // namespace

V sin(V x) { return sin_of(x, 0, sign_bit(x)); }
V cos(V x) { return sin_of(x, 1, x.as(format(x).bits).bits(0)); }

// tan r as a sum of two, so that -1 / tan r is as good.
V tan(V x) {
  const Reduced r = reduce_by_half_pi(abs(x));
  const V h = r.high;
  const V z = h * h;
  const V cube = h * z;
  const V p = polynomial(z, kTan32, kTan64);
  // The derivative, 1 + tan^2, for the low part.
  const V rough = fma(cube, p, h);
  const V slope = fma(rough, rough, 1.0);
  const V rest = fma(cube, p, r.low * slope);
  const Pair t = fast_two_sum(h, rest);
  const V q = x.like(-1.0) / t.high;
  const V left = fma(q, t.high, 1.0);
  const V residual = fma(q, t.low, left);
  const V cotangent = fma(q, residual, q);
  const V odd = (r.quadrant & r.quadrant.bits(1)) != 0.0;
  const V value = select(odd, cotangent, t.high).as(format(x).bits);
  return (value ^ sign_bit(x)).as(x.type());
}

}  // namespace kiln::ir::math
