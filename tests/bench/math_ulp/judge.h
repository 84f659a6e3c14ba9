// How far results are from true values, in units in the last place of the result's type; subnormal results have the units of the smallest
// normal numbers.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::bench {

// Infinity where one is a number (or an infinity, a NaN) and the other is not. An overflow must give the infinity.
double ulps(float got, double exact);
double ulps(double got, long double exact);

// The bits are those of the true value rounded; a NaN is any NaN.
bool rounded(float got, double exact);
bool rounded(double got, long double exact);

struct ManyUlps {
  double worst = 0;         // the largest of all
  std::uint64_t wrong = 0;  // not rounded
};
// All of n at once.
ManyUlps judge(const float* got, const double* exact, std::size_t n);

}  // namespace kiln::bench
