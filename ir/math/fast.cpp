// The functions of f32 in a kernel with fast_math: shorter, with the bounds and the ranges of docs/math.md, and the same bits on every
// device, so the approximate instructions of GPUs (ex2.approx, rcp.approx) are not for them.
//
// Method: one reduction without low parts, one minimax polynomial of our own (Sollya's fpminimax), no case apart for subnormal numbers.
#include "math/functions.h"

namespace kiln::ir::math::fast {
namespace {

// 2^f for |f| <= 1/2: relative error 2^-23.3.
constexpr double kExp2[] = {1, 0x1.62e42ap-1, 0x1.ebf9bap-3, 0x1.c6b69ap-5, 0x1.3ceaf8p-7, 0x1.5bfd58p-10};
// log(1 + f) = f p(f), log2 and log10 too, for |f| <= 1/3: relative errors 2^-22.3.
constexpr double kLog[] = {1, -0x1.ffffe6p-2, 0x1.555e4p-2, -0x1.001076p-2, 0x1.95e066p-3, -0x1.50b8c8p-3, 0x1.5bf6c2p-3, -0x1.38991ap-3};
constexpr double kLog2[] = {0x1.715472p+0, -0x1.715458p-1, 0x1.ec82a2p-2, -0x1.717178p-2,
                            0x1.24682ap-2, -0x1.e51fdp-3,  0x1.f9dfeep-3, -0x1.c62b38p-3};
constexpr double kLog10[] = {0x1.bcb7acp-2, -0x1.bcb78cp-3, 0x1.28856p-3,  -0x1.bcdbp-4,
                             0x1.601568p-4, -0x1.240cacp-4, 0x1.309d82p-4, -0x1.118e48p-4};
// sin r = r + r^3 p(r^2) for |r| <= 1.572, tan r = r + r^3 p(r^2) for |r| <= 0.787: relative errors 2^-27.2, 2^-21.9.
constexpr double kSin[] = {-0x1.55554cp-3, 0x1.110edap-7, -0x1.9f70e6p-13, 0x1.5dc7cep-19};
constexpr double kTan[] = {0x1.555a3cp-2, 0x1.1035d6p-3, 0x1.d28a96p-5, 0x1.a6371p-7, 0x1.4adbc6p-6};

constexpr double kLn2 = 0x1.62e43p-1, kLog10of2 = 0x1.344136p-2;
constexpr Split kLog2e{0x1.715476p+0, 0x1.4ae0cp-26}, kLog2of10{0x1.a934fp+1, 0x1.2f346ep-24};
constexpr Split kPi{0x1.921fb6p+1, -0x1.777a5cp-24}, kHalfPi{0x1.921fb6p+0, -0x1.777a5cp-25};
constexpr double kHalfPiRest = 0x1.ee59dap-50;  // pi/2 is kHalfPi less this
constexpr double kOverPi = 0x1.45f306p-2, kOverHalfPi = 0x1.45f306p-1;

// A whole number plus this has it in the low bits; with the bias they are the exponent field of its power of two, from 0 (for 2^-127, which
// is taken for 0) to 255 (for 2^128, infinity).
constexpr double kWhole = 0x1.8p23, kBiased = kWhole + 127;
constexpr double kLeast = -127.4, kMost = 128.4;

struct Power {
  V p, unit;  // 2^x = p unit
};
// 2^(x log_b), for x that is clamped.
Power power_of(V x, const Split& log_b) {
  const V t = log_b.high == 1 ? x + kBiased : fma(x, log_b.high, x.like(kBiased));
  const V k = t - kBiased;
  V f = log_b.high == 1 ? x - k : fma(x, log_b.high, -k);
  if (log_b.low != 0) f = fma(x, log_b.low, f);
  const V p = polynomial(f, kExp2);
  return {p, (t.as(Type::U32) << 23).as(Type::F32)};
}
V exponential(V x, const Split& log_b) {
  const Power e = power_of(at_least(at_most(x, kMost / log_b.high), kLeast / log_b.high), log_b);
  return e.p * e.unit;
}

struct Parts {
  V f, k;  // x = 2^k (1 + f)
};
Parts split(V x) {
  const V bits = x.as(Type::I32);
  const V e = (bits - bits.bits(0x3f2aaaab)) >> 23;  // 2/3 <= m < 4/3
  const V m = (bits - (e << 23)).as(Type::F32);
  return {m - 1.0, e.cast(Type::F32)};
}
// A subnormal number counts as zero.
V with_edges(V x, V result) {
  const V finite = select(x < kInf, result, x);
  const V low = select(x >= 0.0, x.like(-kInf), kNan);
  return select(x >= kNarrow.least_normal, finite, low);
}
template <std::size_t N>
V logarithm(V x, double step, const double (&c)[N]) {
  const Parts s = split(x);
  const V q = polynomial(s.f, c);
  const V result = step == 1 ? fma(s.f, q, s.k) : fma(s.k, step, s.f * q);
  return with_edges(x, result);
}

// x less k times the unit.
V reduced(V x, V k, const Split& unit) {
  const V high = fma(k, -unit.high, x);
  return fma(k, -unit.low, high);
}
// sin r with the sign that the lowest bit of `turns` says.
V signed_sin(V r, V turns) {
  const V z = r * r;
  const V p = polynomial(z, kSin);
  const V s = fma(r * z, p, r).as(Type::U32);
  return (s ^ (turns.as(Type::U32) << 31)).as(Type::F32);
}

constexpr Split kOne{1, 0};

}  // namespace

V exp(V x) { return exponential(x, kLog2e); }
V exp2(V x) { return exponential(x, kOne); }
V exp10(V x) { return exponential(x, kLog2of10); }

V log(V x) { return logarithm(x, kLn2, kLog); }
V log2(V x) { return logarithm(x, 1, kLog2); }
V log10(V x) { return logarithm(x, kLog10of2, kLog10); }

V sin(V x) {
  const V t = fma(x, kOverPi, x.like(kWhole));
  return signed_sin(reduced(x, t - kWhole, kPi), t);
}

// cos x = sin(x + pi/2): x less an odd multiple of pi/2 has the sign of the multiple.
V cos(V x) {
  const V t = fma(x, kOverPi, x.like(0.5)) + kWhole;
  const V k = (t - kWhole) - 0.5;
  return signed_sin(reduced(x, k, kPi), t);
}

V tan(V x) {
  const V t = fma(x, kOverHalfPi, x.like(kWhole));
  const V k = t - kWhole;
  const V r = fma(k, kHalfPiRest, reduced(x, k, kHalfPi));  // next to a zero of tan little else is left
  const V z = r * r;
  const V p = polynomial(z, kTan);
  const V even = fma(r * z, p, r);
  const V odd = x.like(-1.0) / even;
  const V bits = t.as(Type::U32);
  return select((bits & bits.bits(1)) != 0.0, odd, even);
}

// 1 - 2 / (e^2x + 1).
V tanh(V x) {
  constexpr double kScale = 2 * 0x1.715476p+0;
  const Power e = power_of(at_least(at_most(x, kMost / kScale), kLeast / kScale), {kScale, 0});
  const V sum = fma(e.p, e.unit, 1.0);
  return fma(reciprocal(sum), -2.0, x.like(1.0));
}

V pow(V x, V y) { return exp2(y * log2(x)); }

V powi(V x, V n) {
  const V size = pow(abs(x), n.cast(Type::F32));
  const V odd = n.as(Type::U32) << 31;
  const V flip = odd & x.as(Type::U32);
  const V result = (size.as(Type::U32) ^ flip).as(Type::F32);
  return select(n == 0.0, x.like(1.0), result);
}

V rsqrt(V x) { return reciprocal(sqrt(x)); }

}  // namespace kiln::ir::math::fast
