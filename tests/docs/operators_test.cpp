// The examples of docs/language/operators.md.
#include <cmath>
#include <limits>
#include <numbers>

#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_operators {

// example: operators
KILN_KERNEL(operators, (In<i32> x, Out<i32> y, Out<bool> c))
{
  Val<i32> a = x[0], b = x[1];
  y[0] = a + b * 2 - a / b;  // / and % are toward zero
  y[1] = a % b;
  y[2] = -a;
  y[3] = (a & b) | (a ^ ~b);
  y[4] = a << 3 | b >> 1;  // >> keeps the sign of a signed type
  c[0] = a < b && b != 0;  // && and || do not compute what they need not
  c[1] = !(a >= b) || a == b;
  c[2] = (a <= b) ^ (a > b);  // & | ^ of bool take both sides
}
// end

// example: rounding
KILN_KERNEL(rounding, (In<f32> x, Out<f32, 2> y))
{
  auto i = global_id().x;
  If (i < x.size() && i < y.extent(1)) {
    y[0, i] = floor(x[i]);
    y[1, i] = ceil(x[i]);
    y[2, i] = trunc(x[i]);
    y[3, i] = round_even(x[i]);
    y[4, i] = round_away(x[i]);
  }
}
// end

// example: ordering
KILN_KERNEL(ordering, (In<f32> x, Out<f32> y))
{
  Val<f32> a = x[0], nan = x[1];
  y[0] = min(a, nan);  // the number wins
  y[1] = max(nan, a);
  y[2] = min_nan(a, nan);  // NaN wins
  y[3] = max_nan(nan, a);
  y[4] = abs(a);
  y[5] = copysign(2, a);
  y[6] = clamp(a, -1, 1);
  y[7] = select(is_nan(nan), 0, nan);
  y[8] = cast<f32>(is_inf(a / 0)) + cast<f32>(is_finite(a));
}
// end

// example: bits
KILN_KERNEL(bits, (In<u32> x, Out<u32> y))
{
  Val<u32> a = x[0];
  y[0] = clz(a);             // zeros above the highest one; of 0: 32
  y[1] = ctz(a);             // zeros below the lowest one; of 0: 32
  y[2] = find_first_set(a);  // ctz + 1; of 0: 0
  y[3] = popcount(a);
  y[4] = reverse_bits(a);
  y[5] = byte_swap(a);
  y[6] = rotate_left(a, 8);
  y[7] = rotate_right(a, 8);
  y[8] = funnel_left(a, 0xff000000, 8);   // the upper word of the two, shifted as one
  y[9] = funnel_right(a, 0xff000000, 8);  // the lower word
}
// end

// example: integers
KILN_KERNEL(integers, (In<i32> x, Out<i32> y))
{
  Val<i32> a = x[0], b = x[1];
  y[0] = add_sat(a, 1);  // the nearest end of the type instead of a wrap
  y[1] = sub_sat(b, a);
  y[2] = mul_hi(a, 4);                                           // the upper half of the product
  y[3] = mod_floor(b, 12);                                       // the sign of the divisor: 0 to 11
  y[4] = dp4a(Val<i32>(0x01020304), Val<i32>(0x01010101), 100);  // 100 + 1 + 2 + 3 + 4
}
// end

// example: roots
KILN_KERNEL(roots, (In<f64> x, Out<f64> y))
{
  Val<f64> a = x[0], b = x[1];
  y[0] = sqrt(b);
  y[1] = rsqrt(b);
  y[2] = cbrt(Val<f64>(27));
  y[3] = recip(b);
  y[4] = hypot(a, b);  // sqrt(a * a + b * b) without overflow between
  y[5] = rhypot(a, b);
  y[6] = fma(a, b, 0.5);  // rounded once
}
// end

// example: powers
KILN_KERNEL(powers, (In<f32> x, Out<f32> y))
{
  Val<f32> one = x[0], two = x[1];
  y[0] = exp(one - 1);
  y[1] = exp2(two + one);
  y[2] = exp10(two);
  y[3] = expm1(one - 1);  // exp(x) - 1, exact near 0
  y[4] = log(one);
  y[5] = log2(two * 4);
  y[6] = log10(exp10(two));
  y[7] = log1p(one - 1);  // log(1 + x), exact near 0
  y[8] = pow(two, 10);
  y[9] = powi(two, -1);  // the exponent is an i32
}
// end

// example: circle
KILN_KERNEL(circle, (In<f32> x, Out<f32> y))
{
  Val<f32> zero = x[0], one = x[1];
  y[0] = sin(zero);
  y[1] = cos(zero);
  y[2] = tan(zero);
  y[3] = asin(zero);
  y[4] = degrees(acos(-one));
  y[5] = atan(zero);
  y[6] = atan2(zero, -one);  // y, then x: the angle of the point (-1, 0)
  y[7] = radians(180 * one);
}
// end

// example: hyperbola
KILN_KERNEL(hyperbola, (In<f32> x, Out<f32> y))
{
  Val<f32> zero = x[0], one = x[1];
  y[0] = sinh(zero);
  y[1] = cosh(zero);
  y[2] = tanh(zero);
  y[3] = asinh(zero);
  y[4] = acosh(one);
  y[5] = atanh(zero);
  y[6] = erf(zero);
  y[7] = erfc(zero);
}
// end

// example: conversions
KILN_KERNEL(conversions, (In<f32> x, Out<i32> y, Out<u32> raw))
{
  y[0] = cast<i32>(x[0]);                  // toward zero
  y[1] = cast<i32>(x[1]);                  // the nearest end of the type
  y[2] = cast<i32>(cast<u8>(x[0] * 100));  // 300 is above all of u8: 255
  y[3] = cast<i32>(cast<bool>(x[0]));      // x != 0
  raw[0] = bit_cast<u32>(x[0]);
  raw[1] = bit_cast<u32>(x[0]) >> 23 & 0xff;  // the exponent's bits
}
// end

// example: order
KILN_KERNEL(order, (InOut<u32> next, Out<u32> y))
{
  Val<u32> first = next.atomic_add(0, 1);  // statements of their own: C++ does not say which side of + comes first
  Val<u32> second = next.atomic_add(0, 1);
  y[0] = first + 10 * second;
}
// end

}  // namespace docs_operators

TEST_CASE("docs/language/operators: operators") {
  const i32 a = -7, b = 2;
  const std::vector<Arg> args{buffer<i32>({a, b}), filled<i32>(5, 0), filled<bool>(3, false)};
  check_example<i32>(docs_operators::operators, {{1}, {1}}, args, 1, {a + b * 2 - a / b, a % b, -a, (a & b) | (a ^ ~b), -56 | 1});
  check_example<bool>(docs_operators::operators, {{1}, {1}}, args, 2, {true, true, true});
}

TEST_CASE("docs/language/operators: functions") {
  const f32 nan = std::numeric_limits<f32>::quiet_NaN(), pi = std::numbers::pi_v<f32>;
  check_example<f32>(docs_operators::rounding, {{1}, {4}}, {buffer<f32>({2.5f, -2.5f, 0.7f, -0.3f}), buffer(std::vector<f32>(20), {5, 4})},
                     1, {2, -3, 0, -1, 3, -2, 1, -0.0f, 2, -2, 0, -0.0f, 2, -2, 1, -0.0f, 3, -3, 1, -0.0f});
  check_example<f32>(docs_operators::ordering, {{1}, {1}}, {buffer<f32>({-3, nan}), filled<f32>(9, 0)}, 1,
                     {-3, -3, nan, nan, 3, -2, -1, 0, 2});
  check_example<u32>(docs_operators::bits, {{1}, {1}}, {buffer<u32>({0x00012340}), filled<u32>(10, 0)}, 1,
                     {15, 6, 7, 5, 0x02c48000, 0x40230100, 0x01234000, 0x40000123, 0x012340ff, 0x40ff0000});
  check_example<i32>(docs_operators::integers, {{1}, {1}}, {buffer<i32>({0x7fffffff, -5}), filled<i32>(5, 0)}, 1,
                     {0x7fffffff, INT32_MIN, 1, 7, 110});
  check_example<f64>(docs_operators::roots, {{1}, {1}}, {buffer<f64>({3, 4}), filled<f64>(7, 0)}, 1, {2, 0.5, 3, 0.25, 5, 0.2, 12.5});
  check_example<f32>(docs_operators::powers, {{1}, {1}}, {buffer<f32>({1, 2}), filled<f32>(10, -1)}, 1,
                     {1, 8, 100, 0, 0, 3, 2, 0, 1024, 0.5f});
  check_example<f32>(docs_operators::circle, {{1}, {1}}, {buffer<f32>({0, 1}), filled<f32>(8, -1)}, 1, {0, 1, 0, 0, 180, 0, pi, pi});
  check_example<f32>(docs_operators::hyperbola, {{1}, {1}}, {buffer<f32>({0, 1}), filled<f32>(8, -1)}, 1, {0, 1, 0, 0, 0, 0, 0, 1});
  const std::vector<Arg> conversions{buffer<f32>({3.0f, -1e20f}), filled<i32>(4, 0), filled<u32>(2, 0)};
  check_example<i32>(docs_operators::conversions, {{1}, {1}}, conversions, 1, {3, INT32_MIN, 255, 1});
  check_example<u32>(docs_operators::conversions, {{1}, {1}}, conversions, 2, {0x40400000, 128});
  check_example<u32>(docs_operators::order, {{1}, {1}}, {filled<u32>(1, 0), filled<u32>(1, 0)}, 1, {10});
}
