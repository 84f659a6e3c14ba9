// The quadrant of an angle, and what is left of it.
//
// Method: |x| = k pi/2 + r with a three-part pi/2 (Cody and Waite, "Software Manual for the Elementary Functions", chapter 8, with fused
// multiply-adds); for large |x| the fraction of |x| 2/pi from as many bits of 2/pi as matter (M. Payne and R. Hanek, "Radian reduction for
// trigonometric functions", SIGNUM Newsletter 18, 1983). r is carried as a sum of two numbers.
#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "math/functions.h"

namespace kiln::ir::math {
namespace {

constexpr double kTwoOverPi32 = 0x1.45f306p-1, kTwoOverPi64 = 0x1.45f306dc9c883p-1;
// pi/2 in three parts of the format.
constexpr double kPio2[2][3] = {{0x1.921fb6p+0, -0x1.777a5cp-25, -0x1.ee59dap-50},
                                {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54, -0x1.f1976b7ed8fbcp-110}};
// Up to here k times the first part is subtracted exactly and the third part's tail is far below the result.
constexpr double kMedium32 = 0x1p16, kMedium64 = 0x1p26;

// 2/pi after the binary point, with a word of zeros in front.
constexpr std::array<std::uint64_t, 8> kBits32{0, 0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0, 0xdb629599, 0x3c439041, 0xfe5163ab};
constexpr std::array<std::uint64_t, 20> kBits64{0,
                                                0xa2f9836e4e441529,
                                                0xfc2757d1f534ddc0,
                                                0xdb6295993c439041,
                                                0xfe5163abdebbc561,
                                                0xb7246e3a424dd2e0,
                                                0x06492eea09d1921c,
                                                0xfe1deb1cb129a73e,
                                                0xe88235f52ebb4484,
                                                0xe99c7026b45f7e41,
                                                0x3991d639835339f4,
                                                0x9c845f8bbdf9283b,
                                                0x1ff897ffde05980f,
                                                0xef2f118b5a0a6d1f,
                                                0x6d367ecf27cb09b7,
                                                0x4f463f669e5fea2d,
                                                0x7527bac7ebe5f17b,
                                                0x3d0739f78a5292ea,
                                                0x6bfb5fb11f8d5d08,
                                                0x56033046fc7b6bab};

// k pi/2 is taken off in three parts. The first step is exact: both sides are multiples of the last bit of the first part, or |x| < 1 and
// k = 1, and the difference is below 1. What the second step rounds away is found by Fast2Sum, which holds since r1 is a multiple of the
// last bit of the product.
Reduced reduce_medium(V a) {
  const double (&pio2)[3] = kPio2[wide(a)];
  const V quotient = fma(a, by_format(a, kTwoOverPi32, kTwoOverPi64), a.like(by_format(a, 0x1.8p23, 0x1.8p52)));  // its low bits are k
  const V k = quotient - by_format(a, 0x1.8p23, 0x1.8p52);
  const V r1 = fma(k, -pio2[0], a);
  const V product = k * pio2[1];
  const V product_low = fma(k, pio2[1], -product);
  const V high = r1 - product;
  const V lost = (r1 - high) - product;
  const V low = fma(k, -pio2[2], lost - product_low);
  return {high, low, quotient.as(format(a).bits)};
}

// The four words from `index` on, and that shifted left by `shift` bits, which is below the width: three words. A table as constants: each
// bit of the index chooses one of two halves.
template <std::size_t N>
std::array<V, 3> window(V index, V shift, const std::array<std::uint64_t, N>& table) {
  std::vector<V> words;
  for (const std::uint64_t w : table) words.push_back(index.bits(w));
  for (std::size_t step = std::bit_floor(N - 4); step != 0; step /= 2) {
    const V here = (index & index.bits(step)) != 0.0;
    std::vector<V> next;
    for (std::size_t i = 0; i < std::min(words.size(), step + 3); ++i) {
      next.push_back(i + step < words.size() ? select(here, words[i + step], words[i]) : words[i]);
    }
    words = next;
  }
  const V rest = shift.like(bit_width(shift.type())) - shift;
  const auto funnel = [&](std::size_t i) {
    const V high = words[i] << shift;
    const V low = words[i + 1] >> rest;  // by the whole width: 0
    return high | low;
  };
  const V first = funnel(0);
  const V second = funnel(1);
  const V third = funnel(2);
  return {first, second, third};
}

// a = m 2^e with a whole 24-bit m. Bits of 2/pi that m 2^e makes worth 4 or more only add whole turns. The 96 bits from there on, times m,
// give two bits of the quadrant and the fraction of pi/2 to 2^-62; the smallest fraction of an f32 is above 2^-31.
Reduced reduce_large32(V a) {
  const V bits = a.as(Type::U32);
  const V fraction_bits = bits & bits.bits(0x7fffff);
  const V mantissa = fraction_bits | bits.bits(0x800000);
  const V position = (bits >> 23) - 120;  // e + 30: the zeros in front are 32 bits, two bits of the quadrant stay
  const V shift = position & position.bits(31);
  const auto w = window(position >> 5, shift, kBits32);
  const V a0 = w[0].cast(Type::U64);
  const V a1 = w[1].cast(Type::U64);
  const V a2 = w[2].cast(Type::U64);
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

// The same with 53 bits of m and 192 bits of 2/pi. The smallest fraction of an f64 is above 2^-63, so the 128 bits after the quadrant leave
// 65 for the result; the leading zeros are taken off before they become two f64.
Reduced reduce_large64(V a) {
  const V bits = a.as(Type::U64);
  const V fraction_bits = bits & bits.bits((1ull << 52) - 1);
  const V m = fraction_bits | fraction_bits.bits(1ull << 52);
  const V position = (bits >> 52) - 1013;  // e + 62
  const V shift = position & position.bits(63);
  const auto w = window(position >> 6, shift, kBits64);
  const V p2 = m * w[2];
  const V h2 = m.binary(Opcode::MulHi, w[2]);
  const V p1 = m * w[1] + h2;
  const V carry = (p1 < h2).cast(Type::U64);
  const V h1 = m.binary(Opcode::MulHi, w[1]) + carry;
  const V p0 = m * w[0] + h1;
  const V quadrant = (p0 + p0.bits(1ull << 61)) >> 62;
  // The fraction as a signed number of 128 bits, then its magnitude (but for the last bit).
  const V f0_low = p1 >> 62;
  const V f0 = (p0 << 2) | f0_low;
  const V f1_low = p2 >> 62;
  const V f1 = (p1 << 2) | f1_low;
  const V sign = (f0.as(Type::I64) >> 63).as(Type::U64);
  const V g0 = f0 ^ sign;
  const V g1 = f1 ^ sign;
  const V zeros = g0.unary(Opcode::Clz);
  const V rest = zeros.bits(64) - zeros;
  const V from_below = g1 >> rest;
  const V n0 = (g0 << zeros) | from_below;
  const V n1 = g1 << zeros;
  // 53 bits, and the next 64.
  const V first = (n0 >> 11).cast(Type::F64);
  const V second_low = n1 >> 11;
  const V second = ((n0 << 53) | second_low).cast(Type::F64) * 0x1p-64;
  const double (&pio2)[3] = kPio2[1];
  const V product = first * pio2[0];
  const V error = fma(first, pio2[0], -product);
  const V mixed = fma(first, pio2[1], error);
  const V low = fma(second, pio2[0], mixed);
  const Pair r = fast_two_sum(product, low);
  const V exponent = (zeros + 53).as(Type::I64);
  const V unit = two_to(-exponent);
  const V factor = (unit.as(Type::U64) | (sign & sign.bits(1ull << 63))).as(Type::F64);
  const V high = r.high * factor;
  return {high, r.low * factor, quadrant};
}

}  // namespace

// Large arguments are rare and dear, so they have a branch of their own.
Reduced reduce_by_half_pi(V a) {
  Builder& b = a.builder();
  const Reduced medium = reduce_medium(a);
  const std::uint32_t high = b.slot("math.high", a.type()), low = b.slot("math.low", a.type()),
                      quadrant = b.slot("math.quadrant", format(a).bits);
  const auto assign = [&](const Reduced& r) {
    b.set(high, r.high.id());
    b.set(low, r.low.id());
    b.set(quadrant, r.quadrant.id());
  };
  assign(medium);
  const V large = a > by_format(a, kMedium32, kMedium64);
  const RegionId here = b.region();
  const OpId branch = b.if_(large.id());
  b.set_region(b.kernel().op(branch).regions[0]);
  const Reduced exact = wide(a) ? reduce_large64(a) : reduce_large32(a);
  assign({select(a < kInf, exact.high, kNan), exact.low, exact.quadrant});
  b.set_region(here);
  const V h(b, b.get(high));
  const V l(b, b.get(low));
  const V q(b, b.get(quadrant));
  return {h, l, q};
}

}  // namespace kiln::ir::math
