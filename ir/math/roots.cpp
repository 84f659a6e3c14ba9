// rsqrt, cbrt, hypot and rhypot.
//
// rsqrt: one step of Newton's iteration and its next term with an exact residual (P. Markstein, "IA-64 and Elementary Functions", 2000,
// chapter 9) after a rounded first value; that this rounds correctly for every f32 is tested on all mantissas.
// cbrt: m^(-1/3) by a minimax polynomial (f64) or from the bits of the exponent (f32: W. Kahan, "Computing a real cube root", 1991),
// Halley's iteration on it without division, and a last step on the root with its residual (Markstein, chapter 10). hypot: squares of
// scaled arguments with fused multiply-adds.
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

// m^(-1/3) for m in [1, 8): relative error 2^-9.6.
constexpr double kInverseCbrt[] = {0x1.80a118p+0, -0x1.86a116p-1,  0x1.570926p-2, -0x1.6899c6p-4,
                                   0x1.b200a8p-7, -0x1.13674ap-10, 0x1.1d3112p-15};

// w (1 - h)^(-1/3) with h = 1 - m w^3, to third order.
V halley(V m, V w) {
  const V square = w * w;
  const V cube = square * w;
  const V h = fma(-m, cube, 1.0);
  const V series = fma(h, 2.0 / 9, m.like(1.0 / 3));
  return fma(w * h, series, w);
}

// A first value from the bits, a third of the exponent taken off; then the series of (1 - h)^(-1/3) without its 1, |h| <= 0.1027: error
// 2^-18.5, and a step of Newton's iteration for the root itself.
V cbrt32(V x) {
  constexpr double kSeries[] = {-0x1.5553eap-2, 0x1.c9b308p-3, -0x1.65a2c6p-3};  // of -h
  const V a = abs(x);
  const V tiny = a < kNarrow.least_normal;
  const V scaled = a * 0x1p24;
  const V n = select(tiny, scaled, a);
  const V bits = n.as(Type::U32);
  const V third = bits.binary(Opcode::MulHi, bits.bits(0x55555556));
  const V first = (bits.bits(0x54a1f000) - third).as(Type::F32);
  const V first_root = n * (first * first);
  const V minus_h = fma(first_root, first, -1.0);
  const V series = polynomial(minus_h, kSeries);
  const V w = fma(first * minus_h, series, first);
  const V square = w * w;
  const V c = n * square;
  const V cc = c * c;
  const V left = fma(-cc, c, n);
  const V root = fma(left, square * (1.0 / 3), c);
  const V back = select(tiny, x.like(0x1p-8), 1.0);
  const V result = copysign(root * back, x);
  return select(a < kInf, result, x);
}

// |x| = m 8^q with m in [1, 8).
V cbrt64(V x) {
  const V a = abs(x);
  const V tiny = a < kWide.least_normal;
  const V scaled = a * 0x1p54;
  const V bits = select(tiny, scaled, a).as(Type::U64);
  const V field = bits >> 52;
  const V third = (field * 43691.0) >> 17;
  const V remainder = field - third * 3.0;
  const V fraction = bits & bits.bits((std::uint64_t{1} << 52) - 1);
  const V exponent = (remainder + kWide.bias) << 52;
  const V m = (fraction | exponent).as(Type::F64);

  const V w = halley(m, halley(m, polynomial(m, kInverseCbrt)));
  const V square = w * w;
  const V c = m * square;
  const V cc = c * c;
  const V cc_error = fma(c, c, -cc);
  const V left = fma(-cc, c, m);
  const V residual = fma(-cc_error, c, left);
  const V root = fma(residual, square * (1.0 / 3), c);

  const V q = third.as(Type::I64) - kWide.bias / 3;
  const V back = select(tiny, x.like(0x1p-18), 1.0);
  const V unit = two_to(q) * back;
  const V result = copysign(root * unit, x);
  const V finite = a < kInf;
  const V other = a > 0.0;
  return select(finite & other, result, x);
}

struct Legs {
  V sum;   // of the scaled squares
  V back;  // what undoes the scaling of the root
  V forth;
  V infinite;
};
Legs legs(V x, V y) {
  const double high = by_format(x, 0x1p60, 0x1p500), step = by_format(x, 0x1p90, 0x1p600);
  const V ax = abs(x);
  const V ay = abs(y);
  const V a = ax.binary(Opcode::Max, ay);
  const V big = a > high;
  const V small = a < 1 / high;
  const V forth_small = select(small, x.like(step), 1.0);
  const V forth = select(big, x.like(1 / step), forth_small);
  const V back_small = select(small, x.like(1 / step), 1.0);
  const V back = select(big, x.like(step), back_small);
  const V sx = ax * forth;
  const V sy = ay * forth;
  const V square = sx * sx;
  const V sum = fma(sy, sy, square);
  return {sum, back, forth, a == kInf};  // max takes the number beside NaN
}

// 1 / sqrt(x) for finite x >= 0 to little more than half a unit in the last place: root and reciprocal with what both leave over.
V near_rsqrt(V x) {
  const V root = sqrt(x);
  const V y = reciprocal(root);
  const V left = fma(-y, root, 1.0);
  const V root_left = fma(-root, root, x);
  const V half = y * -0.5;
  const V residual = fma(root_left * y, half, left);
  const V better = fma(y, residual, y);
  return select(x > 0.0, better, y);
}

}  // namespace

V rsqrt(V x) {
  const V root = sqrt(x);
  const V y = reciprocal(root);
  // e = x y^2 - 1 to far beyond the format, then y (1 - e/2 + 3 e^2 / 8). Without the last term, or with the products in another order, one
  // f32 in 2^24 comes out wrong.
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

V cbrt(V x) { return wide(x) ? cbrt64(x) : cbrt32(x); }

// An infinite leg decides, beside NaN too.
V hypot(V x, V y) {
  const Legs l = legs(x, y);
  const V length = sqrt(l.sum) * l.back;
  return select(l.infinite, x.like(kInf), length);
}

V rhypot(V x, V y) {
  const Legs l = legs(x, y);
  const V inverse = near_rsqrt(l.sum) * l.forth;
  return select(l.infinite, x.like(0.0), inverse);
}

}  // namespace kiln::ir::math
