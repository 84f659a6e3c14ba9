// One function each, for f32 and f64 unless said; the sources name their method. Private to ir/math.
#pragma once
#include "math/real.h"

namespace kiln::ir::math {

// exponential.cpp
V exp(V x);
V exp2(V x);
V exp10(V x);
V expm1(V x);
// logarithm.cpp
V log(V x);
V log2(V x);
V log10(V x);
V log1p(V x);
// trigonometric.cpp
V sin(V x);
V cos(V x);
V tan(V x);
// inverse_trigonometric.cpp
V asin(V x);
V acos(V x);
V atan(V x);
V atan2(V y, V x);
// hyperbolic.cpp
V sinh(V x);
V cosh(V x);
V tanh(V x);
V asinh(V x);
V acosh(V x);
V atanh(V x);
// power.cpp
V pow(V x, V y);
V powi(V x, V n);  // n: i32
// roots.cpp
V rsqrt(V x);
V cbrt(V x);
V hypot(V x, V y);
V rhypot(V x, V y);
// error_function.cpp
V erf(V x);
V erfc(V x);
// remainder.cpp
V rem32(V x, V y);
V rem64(V x, V y);

// fast.cpp: f32 in kernels with fast_math; the others have no shorter form.
namespace fast {
V exp(V x);
V exp2(V x);
V exp10(V x);
V log(V x);
V log2(V x);
V log10(V x);
V sin(V x);
V cos(V x);
V tan(V x);
V tanh(V x);
V pow(V x, V y);
V powi(V x, V n);
V rsqrt(V x);
}  // namespace fast

// --- what they share ---

// e^(x + x_low) = p 2^n with p near 1; |x_low| below one unit in the last place of x. What clamp_exponent lets through stays in the range
// of scale(), and beyond its bounds e^x is infinity or rounds to zero even times 2^40.
struct Scaled {
  V p;
  Exponent n;
};
Scaled exp_parts(V x);
Scaled exp_parts(V x, V x_low);
struct ScaledPair {
  Pair p;
  Exponent n;
};
ScaledPair exp_pair(Pair x);  // with the rounding of p
Scaled exp2_parts(V x);       // 2^x, f32
Scaled exp2_parts(V x, V y);  // 2^(x y), f32
V clamp_exponent(V x);        // NaN stays

// log(s + s_low) + extra log 2 for finite s > 0 in the range of normal numbers, |s_low| below one unit in the last place of s; extra: a
// whole number.
V log_of_sum(V s, V s_low, V extra);

// |x| = quadrant pi/2 + high + low for finite x; for others high is NaN. Only the two lowest bits of the quadrant count.
struct Reduced {
  V high, low, quadrant;
};
Reduced reduce_by_half_pi(V magnitude);

}  // namespace kiln::ir::math
