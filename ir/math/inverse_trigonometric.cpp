// asin, acos, atan and atan2.
//
// Method: minimax polynomials (Remez, our own coefficients) after asin a = pi/2 - 2 asin sqrt((1 - a) / 2) for a > 1/2 and
// atan a = pi/2 - atan(1 / a) for a > 1 (Cody and Waite, "Software Manual for the Elementary Functions", chapters 10 and 11). Special
// values as C, Annex F.
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

// asin x = x + x^3 p(x^2) for |x| <= 1/2: relative errors 2^-27.6, 2^-63.6.
constexpr double kAsin32[] = {0x1.5555c8p-3, 0x1.330204p-4, 0x1.747bbcp-5, 0x1.8c3df6p-6, 0x1.595cd8p-5};
constexpr double kAsin64[] = {0x1.5555555555553p-3,  0x1.33333333339e9p-4, 0x1.6db6db6d4c428p-5,  0x1.f1c71ca6e8273p-6,
                              0x1.6e8b9b1856a33p-6,  0x1.1c4f8292325c3p-6, 0x1.c9812d79f5bf2p-7,  0x1.7ba16ffb6280ep-7,
                              0x1.36d50c66aa6f2p-7,  0x1.47b6b56fbfeb2p-7, 0x1.73f625c6f7537p-11, 0x1.95d87f611952ap-6,
                              -0x1.ab58df3862166p-6, 0x1.1352563d3d17cp-5};
// atan q = q + q^3 p(q^2) for |q| <= 1: relative errors 2^-27, 2^-59.3; at 1 the f32 one rounds to pi/4.
constexpr double kAtan32[] = {-0x1.55553ep-2, 0x1.9991e4p-3,  -0x1.242086p-3, 0x1.c08c48p-4,  -0x1.5808dep-4,
                              0x1.da2846p-5,  -0x1.fd7804p-6, 0x1.641b08p-7,  -0x1.d3417cp-10};
constexpr double kAtan64[] = {
    -0x1.555555555554dp-2,  0x1.9999999998c65p-3,  -0x1.249249245768ap-3, 0x1.c71c71b65030fp-4, -0x1.745d15d2b5e1bp-4, 0x1.3b139beaa1ee7p-4,
    -0x1.11103346c88e6p-4,  0x1.e1d49142b1f57p-5,  -0x1.aeda7f1c56442p-5, 0x1.84b4eaa6f675bp-5, -0x1.5f25c1c389848p-5, 0x1.3907c45a28ce3p-5,
    -0x1.0c99e27e8e794p-5,  0x1.ac87f31495b21p-6,  -0x1.310aefb9a83e6p-6, 0x1.72f96d9c8d841p-7, -0x1.6ff934796346cp-8, 0x1.1a2d8cd8be88p-9,
    -0x1.3716b3f48ad3ep-11, 0x1.b41e264207201p-14, -0x1.22c70c080d064p-17};

constexpr Split kPio2[] = {{0x1.921fb6p+0, -0x1.777a5cp-25}, {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54}};
const Split& pio2(V x) { return kPio2[wide(x)]; }

struct Arc {
  V a, s, rest;  // asin s = s + rest with s = a, or sqrt((1 - a) / 2) where a > 1/2
  V large;       // a > 1/2
};
Arc arc(V x) {
  const V a = abs(x);
  const V large = a > 0.5;
  const V half = (a.like(1.0) - a) * 0.5;
  const V z = select(large, half, a * a);
  const V s = select(large, sqrt(half), a);
  const V p = polynomial(z, kAsin32, kAsin64);
  return {a, s, (s * z) * p, large};
}

V atan_unit(V q) {
  const V z = q * q;
  const V p = polynomial(z, kAtan32, kAtan64);
  return fma(p * z, q, q);
}

}  // namespace

// Beyond 1 the square root is NaN.
V asin(V x) {
  const Arc c = arc(x);
  const V less = c.s * -2.0;
  const Pair from_top = fast_two_sum(x.like(pio2(x).high), less);
  const V rest = from_top.low + pio2(x).low;
  const V large = from_top.high + fma(c.rest, -2.0, rest);
  const V magnitude = select(c.large, large, c.s + c.rest);
  return copysign(magnitude, x);
}

V acos(V x) {
  const Arc c = arc(x);
  const V negative = is_negative(x);
  // |x| <= 1/2: pi/2 - (x + rest).
  const V less_s = -copysign(c.s, x);
  const V signed_rest = copysign(c.rest, x);
  const Pair middle = fast_two_sum(x.like(pio2(x).high), less_s);
  const V middle_low = middle.low + pio2(x).low;
  const V small = middle.high + (middle_low - signed_rest);
  // Beyond: 2 (s + rest), or pi less that.
  const V sum = c.s + c.rest;
  const V near_one = sum + sum;
  const V less = c.s * -2.0;
  const Pair turn = fast_two_sum(x.like(2 * pio2(x).high), less);
  const V turn_low = turn.low + 2 * pio2(x).low;
  const V near_minus_one = turn.high + fma(c.rest, -2.0, turn_low);
  const V large = select(negative, near_minus_one, near_one);
  return select(c.large, large, small);
}

V atan(V x) {
  const V a = abs(x);
  const V large = a > 1.0;
  const V inverse = reciprocal(a);
  const V t = atan_unit(select(large, inverse, a));
  const V folded = x.like(pio2(x).high) - (t - pio2(x).low);
  const V magnitude = select(large, folded, t);
  return copysign(magnitude, x);
}

// The angle of the smaller to the larger magnitude, then of the octant.
V atan2(V y, V x) {
  const V ax = abs(x);
  const V ay = abs(y);
  const V steep = ay > ax;
  const V larger = select(steep, ay, ax);
  const V smaller = select(steep, ax, ay);
  const V quotient = smaller / larger;
  // Two infinities count as equal, two zeros as on the axis.
  const V on_axis = ax == 0.0;
  const V equal = select(on_axis, x.like(0.0), 1.0);
  const V t = atan_unit(select(ax == ay, equal, quotient));
  const V left = is_negative(x);
  const V back = left ^ steep;
  const V turned = select(back, -t, t);
  const V straight_base = select(left, x.like(2 * pio2(x).high), 0.0);
  const V straight_low = select(left, x.like(2 * pio2(x).low), 0.0);
  const V base = select(steep, x.like(pio2(x).high), straight_base);
  const V base_low = select(steep, x.like(pio2(x).low), straight_low);
  const V magnitude = base + (turned + base_low);
  const V y_number = y == y;
  const V numbers = y_number & (x == x);
  const V checked = select(numbers, magnitude, kNan);
  return copysign(checked, y);
}

}  // namespace kiln::ir::math
