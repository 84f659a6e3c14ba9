// Distances from the true value, in units in the last place of the result's format.
#pragma once
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

namespace kiln::ir::test {

inline bool same(float a, float b) { return (a != a && b != b) || std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b); }
inline bool same(double a, double b) { return (a != a && b != b) || std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

// `digits` bits of fraction with the hidden one, `least` the exponent of the smallest number, `most` the value from which on infinity is
// right. Large where one is a number and the other is not.
template <class T, class Exact>
double distance(T got, Exact exact, int digits, int least, Exact most) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : 1e30;
  if (std::fabs(exact) >= most) return std::isinf(got) && std::signbit(got) == std::signbit(exact) ? 0 : 1e30;
  if (std::isnan(got) || std::isinf(got)) return 1e30;
  int e;
  std::frexp(exact, &e);
  const double unit = std::ldexp(1.0, std::max(e - digits, least));
  return static_cast<double>(std::fabs(Exact{got} - exact) / Exact{unit});
}
inline double ulps(float got, double exact) { return distance(got, exact, 24, -149, 0x1.ffffffp127); }
inline double ulps(double got, long double exact) { return distance(got, exact, 53, -1074, 0x1.fffffffffffff8p1023L); }

}  // namespace kiln::ir::test
