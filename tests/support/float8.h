// e4m3 and e5m2 by their definition, apart from everything of Kiln: a table of the 256 values, and the nearest of them by comparing.
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "kiln/ir/type.h"

namespace kiln::test {

// OCP's "8-bit floating point specification": e4m3 has no infinity, and one NaN of each sign; e5m2 is as IEEE's formats are.
inline double float8_value(ir::Type type, unsigned code) {
  const bool e4m3 = type == ir::Type::E4M3;
  const int fraction_bits = e4m3 ? 3 : 2, bias = e4m3 ? 7 : 15;
  const int fraction = static_cast<int>(code & ((1u << fraction_bits) - 1)), field = static_cast<int>(code & 0x7f) >> fraction_bits;
  double v = 0;
  if (e4m3 ? (code & 0x7f) == 0x7f : field == 31 && fraction != 0) v = std::numeric_limits<double>::quiet_NaN();
  else if (!e4m3 && field == 31) v = std::numeric_limits<double>::infinity();
  else if (field == 0) v = std::ldexp(fraction, 1 - bias - fraction_bits);
  else v = std::ldexp((1 << fraction_bits) + fraction, field - bias - fraction_bits);
  return (code & 0x80) != 0 ? -v : v;
}

inline unsigned float8_largest(ir::Type type) { return type == ir::Type::E4M3 ? 0x7e : 0x7b; }  // 448, 57344

// What a conversion gives: the nearest, of two that are equally near the one with an even fraction; the largest for everything beyond it.
// A double holds the middle of two of them exactly.
inline unsigned float8_nearest(ir::Type type, double x) {
  if (x != x) return 0x7f;
  const unsigned sign = std::signbit(x) ? 0x80 : 0;
  const double magnitude = std::fabs(x);
  unsigned code = 0;
  for (; code < float8_largest(type); ++code) {
    const double middle = (float8_value(type, code) + float8_value(type, code + 1)) / 2;
    if (magnitude < middle || (magnitude == middle && code % 2 == 0)) break;
  }
  return sign | code;
}

// Numbers where the rounding of a conversion decides, of both signs: each value, the middle of each two, and what lies beside them in the
// float F; zeros, subnormals of F, what is beyond the range, infinities and NaN.
template <class F>
std::vector<F> float8_boundaries(ir::Type type) {
  std::vector<F> v;
  const auto around = [&](double x) {
    const F f = static_cast<F>(x);
    for (const F g : {std::nextafter(f, F(-1e30)), f, std::nextafter(f, F(1e30))}) v.push_back(g), v.push_back(-g);
  };
  for (unsigned code = 0; code <= float8_largest(type); ++code) {
    const double here = float8_value(type, code), step = here - (code == 0 ? 0 : float8_value(type, code - 1));
    const double next = code == float8_largest(type) ? here + step : float8_value(type, code + 1);
    around(here), around((here + next) / 2), around(here + (next - here) / 4);
  }
  using L = std::numeric_limits<F>;
  for (const F f :
       {L::denorm_min(), L::min(), L::max(), L::infinity(), F(1e5), F(2) * static_cast<F>(float8_value(type, float8_largest(type)))})
    v.push_back(f), v.push_back(-f);
  v.push_back(L::quiet_NaN());
  return v;
}

}  // namespace kiln::test
