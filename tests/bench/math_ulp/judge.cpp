#include "judge.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace kiln::bench {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kOverflow = 0x1.ffffffp127;  // from here on an f32 is infinite

// Without branches, so that it becomes vector code.
inline double ulps_of(float got, double exact) {
  const auto bits = std::bit_cast<std::uint64_t>(exact);
  const auto exponent = static_cast<std::int64_t>(bits >> 52 & 0x7ff);  // biased; 2^(exponent - 1023) <= |exact|
  const std::int64_t unit = exponent - 1023 - 23 < -149 ? -149 : exponent - 1023 - 23;
  const double scale = std::bit_cast<double>(static_cast<std::uint64_t>(1023 - unit) << 52);
  const double wide = got, distance = std::fabs(wide - exact) * scale;
  const double limit = std::copysign(kInfinity, exact);
  const bool both_nan = (exact != exact) & (wide != wide);
  const bool overflows = std::fabs(exact) >= kOverflow;
  const bool good_infinity = overflows & (wide == limit);
  const bool comparable = (std::fabs(exact) < kOverflow) & (std::fabs(wide) < kInfinity);
  return comparable ? distance : (both_nan | good_infinity) ? 0.0 : kInfinity;
}

}  // namespace

double ulps(float got, double exact) { return ulps_of(got, exact); }

double ulps(double got, long double exact) {
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kInfinity;
  if (std::fabs(exact) >= 0x1.fffffffffffff8p1023L) return std::isinf(got) && std::signbit(got) == std::signbit(exact) ? 0 : kInfinity;
  if (!std::isfinite(got)) return kInfinity;
  const int unit = exact == 0 ? -1074 : std::max(std::ilogb(exact) - 52, -1074);
  return static_cast<double>(std::ldexp(std::fabs(got - exact), -unit));
}

bool rounded(float got, double exact) {
  const auto right = static_cast<float>(exact);
  return ((got != got) & (right != right)) | (std::bit_cast<std::uint32_t>(got) == std::bit_cast<std::uint32_t>(right));
}
bool rounded(double got, long double exact) {
  const auto right = static_cast<double>(exact);
  return (got != got && right != right) || std::bit_cast<std::uint64_t>(got) == std::bit_cast<std::uint64_t>(right);
}

ManyUlps judge(const float* got, const double* exact, std::size_t n) {
  ManyUlps m;
  for (std::size_t i = 0; i < n; ++i) {
    const double u = ulps_of(got[i], exact[i]);
    m.worst = m.worst < u ? u : m.worst;
  }
  std::uint32_t right = 0;
  for (std::size_t i = 0; i < n; ++i) right += rounded(got[i], exact[i]);
  m.wrong = n - right;
  return m;
}

}  // namespace kiln::bench
