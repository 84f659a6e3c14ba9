// log, log2, log10, log1p, and the logarithm of a sum of two that the inverse hyperbolic functions use.
//
// Method: x = 2^k m with m in [2/3, 4/3), a minimax polynomial for log m - (m - 1) (Cody and Waite, "Software Manual for the Elementary
// Functions", chapter 5; in f64 by s = f / (2 + f), as P. Tang, "Table-driven implementation of the logarithm function in IEEE
// floating-point arithmetic", ACM TOMS 16, 1990, section 3), and the large terms added as a sum of two. The coefficients are our own
// (Remez).
#include "math/functions.h"

namespace kiln::ir::math {
namespace {

// log(1 + f) = f - f^2 / 2 + f^3 q(f) for |f| <= 1/3: relative error 2^-30.
constexpr double kLog32[] = {0x1.555556p-2,  -0x1.ffff02p-3, 0x1.99985ep-3,  -0x1.559bbap-3, 0x1.24d78cp-3,
                             -0x1.f3341ap-4, 0x1.bb4fc8p-4,  -0x1.07e1f6p-3, 0x1.e01216p-4};
// log(1 + f) = 2 s + s z q(z) with z = s^2 for the same f: relative error 2^-62.7.
constexpr double kLog64[] = {0x1.555555555554fp-1, 0x1.999999999c17dp-2, 0x1.24924921e3fd7p-2, 0x1.c71c7490120fap-3,
                             0x1.745c4ac5d9031p-3, 0x1.3b35c3e0849b9p-3, 0x1.0dcb5ce77d25bp-3, 0x1.1b83351d4fdfbp-3};
constexpr std::uint64_t kTwoThirds32 = 0x3f2aaaab, kTwoThirds64 = 0x3fe5555555555555;

constexpr Split kLog2e[] = {{0x1.715476p+0, 0x1.4ae0cp-26}, {0x1.71547652b82fep+0, 0x1.777d0ffda0d24p-56}};
constexpr Split kLog10e[] = {{0x1.bcb7b2p-2, -0x1.5b235ep-27}, {0x1.bcb7b1526e50ep-2, 0x1.95355baaafad3p-57}};
constexpr Split kLog10of2[] = {{0x1.344136p-2, -0x1.ec10cp-27}, {0x1.34413509f79ffp-2, -0x1.9dc1da994fd21p-59}};

struct Parts {
  V f, k;  // 2^k (1 + f)
};
// Of a positive normal number; k as an integer.
Parts split(V x) {
  const V bits = x.as(format(x).integer);
  const V e = (bits - bits.bits(by_format(x, kTwoThirds32, kTwoThirds64))) >> format(x).fraction;
  const V m = (bits - (e << format(x).fraction)).as(x.type());
  return {m - 1.0, e};
}
// Of any positive number; k as a float.
Parts split_any(V x) {
  const double digits = format(x).fraction;
  const V tiny = x < format(x).least_normal;
  const V scaled = x * by_format(x, 0x1p23, 0x1p52);
  const Parts p = split(select(tiny, scaled, x));
  const V shift = select(tiny, x.like(-digits), 0.0);
  return {p.f, to_real(p.k) + shift};
}

// log(1 + f) - f.
V tail(V f) {
  const V half = f * 0.5;
  const Pair half_square = two_product(half, f);
  if (!wide(f)) {
    const V q = polynomial(f, kLog32);
    const V cube = (half_square.high + half_square.high) * f;
    const V third = fma(cube, q, -half_square.low);
    return third - half_square.high;
  }
  const V s = f / (f + 2.0);
  const V z = s * s;
  const V q = polynomial(z, kLog64);
  const V sum = fma(z, q, half_square.high);
  const V third = fma(s, sum, -half_square.low);
  return third - half_square.high;
}

// k step + (f + rest) unit, as an exact sum of the large parts and a rest. |step| > |f unit| or k is 0.
V combine(V k, const Split& step, V f, V rest, const Split& unit) {
  const bool natural = unit.high == 1.0, binary = step.high == 1.0;
  V product = f, below = rest;
  if (!natural) {
    const Pair p = times(f, unit);
    product = p.high;
    below = fma(rest, unit.high, p.low);
  }
  V large = k;
  if (!binary) {
    const Pair p = times(k, step);
    large = p.high;
    below = below + p.low;
  }
  const Pair sum = fast_two_sum(large, product);
  const V low = sum.low + below;
  return sum.high + low;
}

// Infinity and NaN stay, below zero is NaN, zero gives -infinity.
V with_edges(V x, V result) {
  const V finite = select(x < kInf, result, x);
  const V is_zero = x == 0.0;
  const V zero = select(is_zero, x.like(-kInf), kNan);  // NaN: below zero, and NaN itself
  return select(x > 0.0, finite, zero);
}

V logarithm(V x, const Split& step, const Split& unit) {
  const Parts p = split_any(x);
  const V rest = tail(p.f);
  return with_edges(x, combine(p.k, step, p.f, rest, unit));
}

constexpr Split kOne{1, 0};

}  // namespace

V log(V x) {
  if (wide(x)) return logarithm(x, ln2(x), kOne);
  const Parts p = split_any(x);
  const V inner = polynomial(p.f, kLog32);
  const V q = fma(inner, p.f, -0.5);
  const V square = p.f * p.f;
  const V log_m = fma(q, square, p.f);
  return with_edges(x, fma(p.k, ln2(x).high, log_m));
}
V log2(V x) { return logarithm(x, kOne, kLog2e[wide(x)]); }
V log10(V x) { return logarithm(x, kLog10of2[wide(x)], kLog10e[wide(x)]); }

V log_of_sum(V s, V s_low, V extra) {
  const Parts p = split(s);
  // s_low 2^-k; it has no part where k is large.
  const V bounded = p.k.binary(Opcode::Min, p.k.like(100));
  const V low = s_low * two_to(-bounded);
  // log(1 + f + low) = log(1 + f) + low / (1 + f) - low^2 / 2, the quotient by its series.
  const V series = fma(p.f, p.f, low.like(1.0) - p.f);
  const V factor = fma(low, -0.5, series);
  const V rest = fma(low, factor, tail(p.f));
  const V k = to_real(p.k) + extra;
  return combine(k, ln2(s), p.f, rest, kOne);
}

// -1 gives -infinity, less is NaN, and the sign of zero stays.
V log1p(V x) {
  const V in_range = select(x > -1.0, x, 1.0);
  const Pair s = two_sum(x.like(1.0), in_range);
  const V r = log_of_sum(s.high, s.low, x.like(0.0));
  const V at_edge = x == -1.0;
  const V at_least = select(at_edge, x.like(-kInf), kNan);
  const V defined = select(x > -1.0, r, at_least);
  const V zero = x == 0.0;
  const V unbounded = x == kInf;
  const V same = zero | unbounded;
  return select(same, x, defined);
}

}  // namespace kiln::ir::math
