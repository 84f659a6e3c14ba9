// The remainder of floats with the sign of the dividend, exact for all arguments.
//
// Method: long division of the whole-number mantissas, many quotient bits a step. For f32 a step is 29 bits in f64 arithmetic: dividend
// below 2^53, quotient by one division, remainder by one fused multiply-add, both exact but for a quotient that may be one too large. For
// f64 it is 11 bits in u64 arithmetic.
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

// |v| = mantissa 2^(exponent - bias), for subnormals too.
struct Parts {
  V mantissa, exponent;
};
Parts parts32(V a) {
  const V bits = a.as(Type::U32);
  const V field = bits >> 23;
  const V fraction = bits & bits.bits(0x7fffff);
  const V subnormal = field == 0.0;
  const V mantissa = select(subnormal, fraction, fraction | fraction.bits(0x800000));
  const V exponent = select(subnormal, field.bits(1), field);
  return {mantissa, exponent.as(Type::I32)};
}
Parts parts64(V a) {
  const V bits = a.as(Type::U64);
  const V field = bits >> 52;
  const V fraction = bits & bits.bits((1ull << 52) - 1);
  const V subnormal = field == 0.0;
  const V mantissa = select(subnormal, fraction, fraction | fraction.bits(1ull << 52));
  const V exponent = select(subnormal, field.bits(1), field);
  return {mantissa, exponent.cast(Type::I32)};
}

// 2^n as f64 for a normal result.
V power_of_two(V n) { return two_to(n.cast(Type::I64)); }

struct Step {
  V remainder, left;
};
// (r 2^s) mod m for the next s <= 29 of `left` bits.
Step step32(V r, V m, V left) {
  const V s = select(left < 29.0, left, 29.0);
  const V shifted = r * power_of_two(s);
  const V quotient = trunc(shifted / m);
  const V rest = fma(-quotient, m, shifted);
  const V back = rest + m;
  const V remainder = select(rest < 0.0, back, rest);
  return {remainder, left - s};
}
Step step64(V r, V m, V left) {
  const V s = select(left < 11.0, left, 11.0);
  const V remainder = (r << s.cast(Type::U64)) % m;
  return {remainder, left - s};
}

// Applies `step` until no bits are left; the first one outside of the loop, since it is mostly the only one.
V divide(V r, V m, V bits, Step (*step)(V, V, V)) {
  Builder& b = r.builder();
  const std::uint32_t rest = b.slot("math.rest", r.type()), left = b.slot("math.left", Type::I32);
  const auto assign = [&](const Step& s) {
    b.set(rest, s.remainder.id());
    b.set(left, s.left.id());
  };
  assign(step(r, m, bits));
  const RegionId here = b.region();
  const OpId loop = b.while_();
  b.set_region(b.kernel().op(loop).regions[0]);
  const V more = V(b, b.get(left)) > 0.0;
  b.yield(more.id());
  b.set_region(b.kernel().op(loop).regions[1]);
  const V current(b, b.get(rest));
  const V remaining(b, b.get(left));
  assign(step(current, m, remaining));
  b.set_region(here);
  return {b, b.get(rest)};
}

// Bits of the quotient beyond the first; 0 where the dividend is the smaller one or not finite, so that the loop is short.
V quotient_bits(const Parts& x, const Parts& y, V divides) {
  const V difference = x.exponent - y.exponent;
  return select(divides, difference, 0.0);
}

V finish(V x, V a, V b, V remainder) {
  const V with_sign = copysign(remainder, x);
  const V smaller = a < b;  // also a finite a with an infinite b
  const V value = select(smaller, x, with_sign);
  const V finite = a < kInf;
  const V divisor = b > 0.0;  // false for 0 and NaN
  const V defined = finite & divisor;
  return select(defined, value, x.like(kNan));
}

V divides(V a, V b) {
  const V at_least = a >= b;
  const V finite = a < kInf;
  const V divisor = b > 0.0;
  return (at_least & finite) & divisor;
}

}  // namespace

V rem32(V x, V y) {
  const V a = abs(x);
  const V b = abs(y);
  const Parts px = parts32(a);
  const Parts py = parts32(b);
  const V bits = quotient_bits(px, py, divides(a, b));
  const V mx = px.mantissa.cast(Type::F64);
  const V my = py.mantissa.cast(Type::F64);
  const V whole = divide(mx, my, bits, step32);
  const V unit = power_of_two(py.exponent - 150);
  return finish(x, a, b, (whole * unit).cast(Type::F32));
}

V rem64(V x, V y) {
  const V a = abs(x);
  const V b = abs(y);
  const Parts px = parts64(a);
  const Parts py = parts64(b);
  const V bits = quotient_bits(px, py, divides(a, b));
  const V whole = divide(px.mantissa, py.mantissa, bits, step64).cast(Type::F64);
  // 2^(exponent - 1075) in two factors, since it may be subnormal; the products are exact.
  const V n = py.exponent - 1075;
  const V half = n >> 1;
  const V first = whole * power_of_two(half);
  const V second = power_of_two(n - half);
  return finish(x, a, b, first * second);
}

}  // namespace kiln::ir::math
