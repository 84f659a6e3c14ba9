// sin and cos.
//
// Method: |x| = k pi/2 + r with a three-part pi/2 (Cody and Waite, "Software Manual for the Elementary Functions", chapter 8, with fused
// multiply-adds); for large |x| the fraction of |x| 2/pi from as many bits of 2/pi as matter (M. Payne and R. Hanek, "Radian reduction for
// trigonometric functions", SIGNUM Newsletter 18, 1983). r is carried as a sum of two numbers. The coefficients are our own (Remez).
#include <cstdint>
#include <limits>

#include "math/functions.h"

namespace kiln::ir::math {
namespace {

constexpr double kTwoOverPi = 0x1.45f306p-1;
constexpr double kPio2[] = {0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50};  // pi/2, each an f32
// Up to here k times the first part is subtracted exactly and the third part's tail is far below the result.
constexpr double kMedium = 65536.0;

// sin r = r + r^3 s(r^2) and cos r = 1 - r^2/2 + r^4 c(r^2) for |r| <= 0.8: relative errors 2^-26.8, 2^-30.2.
constexpr double kSin[] = {-0x1.555544p-3, 0x1.11067ap-7, -0x1.990254p-13};
constexpr double kCos[] = {0x1.555548p-5, -0x1.6c0b62p-10, 0x1.99afa8p-16};

// 2/pi after the binary point, with a word of zeros in front.
constexpr std::uint32_t kTwoOverPiBits[] = {0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};

struct Reduced {
  V high, low;  // r = high + low
  V quadrant;   // k as u32; only its two lowest bits count
};

// k pi/2 is taken off in three parts. The first step is exact: both sides are multiples of 2^-24 (2^-23 is the last bit of the first part,
// and |x| >= 0.78 where k > 0) and the difference is below 1. What the second step rounds away is found by Fast2Sum (T. Dekker, 1971),
// which holds since r1 is a multiple of the last bit of the product.
Reduced reduce_medium(V a) {
  const V k = round_even(a * kTwoOverPi);
  const V r1 = fma(k, -kPio2[0], a);
  const V product = k * kPio2[1];
  const V product_low = fma(k, kPio2[1], -product);
  const V high = r1 - product;
  const V lost = (r1 - high) - product;
  const V low = fma(k, -kPio2[2], lost - product_low);
  return {high, low, k.cast(Type::U32)};
}

// Word `index + offset` of the table, for an index from 0 to 4.
V table_word(V index, unsigned offset) {
  V word = index.bits(kTwoOverPiBits[offset]);
  for (unsigned i = 1; i <= 4; ++i) {
    const V here = index == i;
    word = select(here, index.bits(kTwoOverPiBits[i + offset]), word);
  }
  return word;
}

// 32 bits of the two words from bit `shift` on. A shift by 32 gives 0.
V funnel(V first, V second, V shift, V rest) {
  const V high = first << shift;
  const V low = second >> rest;
  return high | low;
}

// a = m 2^e with a whole 24-bit m. Bits of 2/pi that m 2^e makes worth 4 or more only add whole turns. The 96 bits from there on, times m,
// give two bits of the quadrant and the fraction of pi/2 to 2^-62; the smallest fraction of an f32 is above 2^-31.
Reduced reduce_large(V a) {
  const V bits = a.as(Type::U32);
  const V fraction_bits = bits & bits.bits(0x7fffff);
  const V mantissa = fraction_bits | bits.bits(0x800000);
  const V position = (bits >> 23) - 120;  // e + 30: the zeros in front are 32 bits, two bits of the quadrant stay
  const V index = position >> 5;
  const V shift = position & position.bits(31);
  const V rest = shift.bits(32) - shift;
  const V w0 = table_word(index, 0);
  const V w1 = table_word(index, 1);
  const V w2 = table_word(index, 2);
  const V w3 = table_word(index, 3);
  const V a0 = funnel(w0, w1, shift, rest).cast(Type::U64);
  const V a1 = funnel(w1, w2, shift, rest).cast(Type::U64);
  const V a2 = funnel(w2, w3, shift, rest).cast(Type::U64);
  const V m = mantissa.cast(Type::U64);
  const V top = (a0 << 32) | a1;
  const V carried = (m * a2) >> 32;
  const V p = m * top + carried;  // turns of pi/2 times 2^62, mod 4
  const V quadrant = (p + p.bits(1ull << 61)) >> 62;
  const V fraction = (p << 2).as(Type::I64).cast(Type::F64);
  const V r = fraction * 0x1.921fb54442d18p-64;  // pi/2 2^-64
  const V high = r.cast(Type::F32);
  const V back = high.cast(Type::F64);
  const V low = (r - back).cast(Type::F32);
  return {high, low, quadrant.cast(Type::U32)};
}

// Large arguments are rare and dear, so they have a branch of their own.
Reduced reduce(V a) {
  Builder& b = a.builder();
  const Reduced medium = reduce_medium(a);
  const std::uint32_t high = b.slot("math.high", Type::F32), low = b.slot("math.low", Type::F32),
                      quadrant = b.slot("math.quadrant", Type::U32);
  const auto assign = [&](const Reduced& r) {
    b.set(high, r.high.id());
    b.set(low, r.low.id());
    b.set(quadrant, r.quadrant.id());
  };
  assign(medium);
  const V not_medium = a > kMedium;
  const V finite = a < std::numeric_limits<double>::infinity();  // infinity goes the other way, to NaN
  const V large = not_medium & finite;
  const RegionId here = b.region();
  const OpId branch = b.if_(large.id());
  b.set_region(b.kernel().op(branch).regions[0]);
  assign(reduce_large(a));
  b.set_region(here);
  const V h(b, b.get(high));
  const V l(b, b.get(low));
  const V q(b, b.get(quadrant));
  return {h, l, q};
}

// sin(|x| + turns pi/2) with the sign bit of `sign` applied.
V sin_of(V x, unsigned turns, V sign) {
  const Reduced r = reduce(abs(x));
  const V h = r.high;
  const V z = h * h;
  // 1 - z/2 loses bits; what it loses is added back with the rest.
  const V cp = polynomial(z, kCos);
  const V half = z * 0.5;
  const V w = z.like(1.0) - half;
  const V lost = (z.like(1.0) - w) - half;
  const V shifted = fma(-h, r.low, lost);
  const V square = z * z;
  const V c = w + fma(square, cp, shifted);
  const V sp = polynomial(z, kSin);
  const V cube = h * z;
  const V tail = r.low * c;
  const V s = h + fma(cube, sp, tail);
  const V q = turns == 0 ? r.quadrant : r.quadrant + turns;
  const V odd = (q & q.bits(1)) != 0.0;
  const V value = select(odd, c, s).as(Type::U32);
  const V flip = (q & q.bits(2)) << 30;
  return (value ^ (flip ^ sign)).as(Type::F32);
}

}  // namespace

V sin32(V x) {
  const V bits = x.as(Type::U32);
  return sin_of(x, 0, bits & bits.bits(0x80000000u));
}
V cos32(V x) { return sin_of(x, 1, x.as(Type::U32).bits(0)); }

}  // namespace kiln::ir::math
