#include <cfenv>
#include <cmath>

#include "simcuda/ptx_testing.h"

using namespace kiln::simcuda;
using namespace kiln::simcuda::testing;

namespace {

u64 nan32(float v) { return v != v ? 0x7fffffffu : bits32(v); }
u64 nan64(double v) { return v != v ? 0x7fffffffffffffffu : bits64(v); }
u64 flushed(u64 v) { return (v & 0x7f800000) == 0 ? v & 0x80000000 : v; }

// An operation in a rounding mode of the host; volatile keeps the compiler from doing it before.
template <class T, class F>
T rounded(int mode, F f, T a, T b = 0, T c = 0) {
  volatile T x = a, y = b, z = c;
  std::fesetround(mode);
  volatile T r = f(x, y, z);
  std::fesetround(FE_TONEAREST);
  return r;
}

constexpr std::pair<const char*, int> kModes[] = {{"rn", FE_TONEAREST}, {"rz", FE_TOWARDZERO}, {"rm", FE_DOWNWARD}, {"rp", FE_UPWARD}};

}  // namespace

TEST_CASE("f32 arithmetic is rounded once in each of the four directions, with canonical NaNs") {
  const Inputs in = pairs(float_edges());
  for (const auto& [name, mode] : kModes) {
    const std::string r(name);
    check_table("add." + r + ".f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) {
      return nan32(rounded<float>(mode, [](float x, float y, float) { return x + y; }, float32(a), float32(b)));
    });
    check_table("sub." + r + ".f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) {
      return nan32(rounded<float>(mode, [](float x, float y, float) { return x - y; }, float32(a), float32(b)));
    });
    check_table("mul." + r + ".f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) {
      return nan32(rounded<float>(mode, [](float x, float y, float) { return x * y; }, float32(a), float32(b)));
    });
    check_table("div." + r + ".f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) {
      return nan32(rounded<float>(mode, [](float x, float y, float) { return x / y; }, float32(a), float32(b)));
    });
    check_table("rcp." + r + ".f32 %fr, %fa;", 'f', in,
                [&](u64 a, u64, u64) { return nan32(rounded<float>(mode, [](float x, float, float) { return 1.0f / x; }, float32(a))); });
    check_table("sqrt." + r + ".f32 %fr, %fa;", 'f', in, [&](u64 a, u64, u64) {
      return nan32(rounded<float>(mode, [](float x, float, float) { return std::sqrt(x); }, float32(a)));
    });
  }
  std::vector<u64> few(float_edges().begin(), float_edges().begin() + 14);
  few.insert(few.end(), {0x7f800000, 0x7fc00000, 0x33800000, 0x4b000001});
  for (const auto& [name, mode] : kModes) {
    check_table("fma." + std::string(name) + ".f32 %fr, %fa, %fb, %fc;", 'f', triples(few), [&](u64 a, u64 b, u64 c) {
      return nan32(rounded<float>(mode, [](float x, float y, float z) { return std::fma(x, y, z); }, float32(a), float32(b), float32(c)));
    });
  }
}

TEST_CASE("f64 arithmetic is rounded once in each of the four directions") {
  const Inputs in = pairs(double_edges());
  for (const auto& [name, mode] : kModes) {
    const std::string r(name);
    check_table("add." + r + ".f64 %gr, %ga, %gb;", 'g', in, [&](u64 a, u64 b, u64) {
      return nan64(rounded<double>(mode, [](double x, double y, double) { return x + y; }, float64(a), float64(b)));
    });
    check_table("mul." + r + ".f64 %gr, %ga, %gb;", 'g', in, [&](u64 a, u64 b, u64) {
      return nan64(rounded<double>(mode, [](double x, double y, double) { return x * y; }, float64(a), float64(b)));
    });
    check_table("div." + r + ".f64 %gr, %ga, %gb;", 'g', in, [&](u64 a, u64 b, u64) {
      return nan64(rounded<double>(mode, [](double x, double y, double) { return x / y; }, float64(a), float64(b)));
    });
    check_table("sqrt." + r + ".f64 %gr, %ga;", 'g', in, [&](u64 a, u64, u64) {
      return nan64(rounded<double>(mode, [](double x, double, double) { return std::sqrt(x); }, float64(a)));
    });
    check_table("fma." + r + ".f64 %gr, %ga, %gb, %ga;", 'g', in, [&](u64 a, u64 b, u64) {
      return nan64(
          rounded<double>(mode, [](double x, double y, double z) { return std::fma(x, y, z); }, float64(a), float64(b), float64(a)));
    });
  }
}

TEST_CASE("ftz flushes subnormal arguments and results with their sign, sat clamps and makes zero of a NaN") {
  const Inputs in = pairs(float_edges());
  check_table("add.ftz.f32 %fr, %fa, %fb;", 'f', in,
              [](u64 a, u64 b, u64) { return flushed(nan32(float32(flushed(a)) + float32(flushed(b)))); });
  check_table("mul.ftz.f32 %fr, %fa, %fb;", 'f', in,
              [](u64 a, u64 b, u64) { return flushed(nan32(float32(flushed(a)) * float32(flushed(b)))); });
  check_table("fma.rn.ftz.f32 %fr, %fa, %fb, %fa;", 'f', in,
              [](u64 a, u64 b, u64) { return flushed(nan32(std::fma(float32(flushed(a)), float32(flushed(b)), float32(flushed(a))))); });
  check_table("div.rz.ftz.f32 %fr, %fa, %fb;", 'f', in, [](u64 a, u64 b, u64) {
    return flushed(
        nan32(rounded<float>(FE_TOWARDZERO, [](float x, float y, float) { return x / y; }, float32(flushed(a)), float32(flushed(b)))));
  });
  const auto sat = [](float v) { return v > 0 ? (v < 1 ? v : 1.0f) : 0.0f; };
  check_table("add.sat.f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) { return bits32(sat(float32(a) + float32(b))); });
  check_table("mul.ftz.sat.f32 %fr, %fa, %fb;", 'f', in,
              [&](u64 a, u64 b, u64) { return flushed(bits32(sat(float32(flushed(a)) * float32(flushed(b))))); });
  check_table("neg.ftz.f32 %fr, %fa;", 'f', in, [](u64 a, u64, u64) { return flushed(a) ^ 0x80000000; });
  check_table("abs.f32 %fr, %fa;", 'f', in, [](u64 a, u64, u64) { return a & 0x7fffffff; });
  check_table("neg.f64 %gr, %ga;", 'g', pairs(double_edges()), [](u64 a, u64, u64) { return a ^ u64{1} << 63; });
  check_table("copysign.f32 %fr, %fa, %fb;", 'f', in, [](u64 a, u64 b, u64) { return (a & 0x80000000) | (b & 0x7fffffff); });
}

TEST_CASE("minimum and maximum prefer a number to a NaN unless told otherwise, and know minus zero") {
  const Inputs in = pairs(float_edges());
  const auto pick = [](u64 a, u64 b, bool max, bool nan) -> u64 {
    const float x = float32(a), y = float32(b);
    if (x != x || y != y) return nan || (x != x && y != y) ? 0x7fffffff : x != x ? b : a;
    if (x == y) return max ? a & b : a | b;  // equal but for the sign of zero
    return (x < y) != max ? a : b;
  };
  check_table("min.f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) { return pick(a, b, false, false); });
  check_table("max.f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) { return pick(a, b, true, false); });
  check_table("max.NaN.f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) { return pick(a, b, true, true); });
  check_table("min.ftz.f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) { return pick(flushed(a), flushed(b), false, false); });
  check_table("min.xorsign.abs.f32 %fr, %fa, %fb;", 'f', in, [&](u64 a, u64 b, u64) {
    const u64 r = pick(a & 0x7fffffff, b & 0x7fffffff, false, false);
    return r == 0x7fffffff && float32(a) != float32(a) && float32(b) != float32(b) ? 0x7fffffffu : r | ((a ^ b) & 0x80000000);
  });
  // Of three, from sm_100 on.
  const Inputs three = triples(float_edges());
  check_table(
      "min.f32 %fr, %fa, %fb, %fc;", 'f', three, [&](u64 a, u64 b, u64 c) { return pick(pick(a, b, false, false), c, false, false); }, 100);
  check_table(
      "max.f32 %fr, %fa, %fb, %fc;", 'f', three, [&](u64 a, u64 b, u64 c) { return pick(pick(a, b, true, false), c, true, false); }, 100);
  check_table(
      "min.NaN.f32 %fr, %fa, %fb, %fc;", 'f', three, [&](u64 a, u64 b, u64 c) { return pick(pick(a, b, false, true), c, false, true); },
      100);
  check_table(
      "max.ftz.abs.f32 %fr, %fa, %fb, %fc;", 'f', three,
      [&](u64 a, u64 b, u64 c) {
        const auto size = [](u64 v) { return flushed(v) & 0x7fffffff; };
        return pick(pick(size(a), size(b), true, false), size(c), true, false);
      },
      100);
  check_table("max.f64 %gr, %ga, %gb;", 'g', pairs(double_edges()), [](u64 a, u64 b, u64) -> u64 {
    const double x = float64(a), y = float64(b);
    if (x != x || y != y) return x != x && y != y ? 0x7fffffffffffffff : x != x ? b : a;
    return x == y ? (a & b) : x < y ? b : a;
  });
}

TEST_CASE("float comparisons: ordered ones are false with a NaN, unordered ones true") {
  const Inputs in = pairs(float_edges());
  check_table("setp.eq.f32 %pr, %fa, %fb;", 'p', in, [](u64 a, u64 b, u64) { return float32(a) == float32(b); });
  check_table("setp.ne.f32 %pr, %fa, %fb;", 'p', in, [](u64 a, u64 b, u64) { return float32(a) < float32(b) || float32(a) > float32(b); });
  check_table("setp.neu.f32 %pr, %fa, %fb;", 'p', in, [](u64 a, u64 b, u64) { return float32(a) != float32(b); });
  check_table("setp.ltu.f32 %pr, %fa, %fb;", 'p', in, [](u64 a, u64 b, u64) { return !(float32(a) >= float32(b)); });
  check_table("setp.ge.f32 %pr, %fa, %fb;", 'p', in, [](u64 a, u64 b, u64) { return float32(a) >= float32(b); });
  check_table("setp.gtu.ftz.f32 %pr, %fa, %fb;", 'p', in, [](u64 a, u64 b, u64) { return !(float32(flushed(a)) <= float32(flushed(b))); });
  check_table("setp.num.f32 %pr, %fa, %fb;", 'p', in, [](u64 a, u64 b, u64) { return !std::isnan(float32(a)) && !std::isnan(float32(b)); });
  check_table("setp.nan.f64 %pr, %ga, %gb;", 'p', pairs(double_edges()),
              [](u64 a, u64 b, u64) { return std::isnan(float64(a)) || std::isnan(float64(b)); });
  check_table("testp.subnormal.f32 %pr, %fa;", 'p', in, [](u64 a, u64, u64) { return (a & 0x7f800000) == 0 && (a & 0x7fffff) != 0; });
  check_table("testp.finite.f64 %pr, %ga;", 'p', pairs(double_edges()), [](u64 a, u64, u64) { return std::isfinite(float64(a)); });
}

TEST_CASE("conversions between floats and integers saturate, round as written, and follow the NaN rules") {
  const Inputs in = singles(float_edges());
  const Inputs wide = singles(double_edges());
  const auto to = [](double v, double low, double high) { return v < low ? low : v > high ? high : v; };
  check_table("cvt.rzi.s32.f32 %rr, %fa;", 'r', in, [&](u64 a, u64, u64) {
    return std::isnan(float32(a)) ? 0
                                  : static_cast<u32>(static_cast<std::int32_t>(to(std::trunc(float32(a)), -2147483648.0, 2147483647.0)));
  });
  check_table("cvt.rni.u32.f32 %rr, %fa;", 'r', in, [&](u64 a, u64, u64) {
    return std::isnan(float32(a)) ? 0 : static_cast<u32>(to(std::nearbyint(float32(a)), 0, 4294967295.0));
  });
  check_table("cvt.rmi.s8.f32 %rr, %fa;", 'r', in, [&](u64 a, u64, u64) {
    return std::isnan(float32(a)) ? 0 : static_cast<u32>(static_cast<std::int32_t>(to(std::floor(float32(a)), -128, 127)));
  });
  check_table("cvt.rzi.s32.f64 %rr, %ga;", 'r', wide, [&](u64 a, u64, u64) {
    return std::isnan(float64(a)) ? 0x80000000u
                                  : static_cast<u32>(static_cast<std::int32_t>(to(std::trunc(float64(a)), -2147483648.0, 2147483647.0)));
  });
  check_table("cvt.rpi.u64.f64 %dr, %ga;", 'd', wide, [&](u64 a, u64, u64) {
    const double v = std::ceil(float64(a));
    return v != v ? u64{1} << 63 : v <= 0 ? 0 : v >= 18446744073709551616.0 ? ~u64{0} : static_cast<u64>(v);
  });
  check_table("cvt.rzi.s64.f32 %dr, %fa;", 'd', in, [&](u64 a, u64, u64) {
    const float v = std::trunc(float32(a));
    return v != v                        ? u64{1} << 63
           : v >= 9223372036854775808.0f ? 0x7fffffffffffffff
           : v < -9223372036854775808.0f ? u64{1} << 63
                                         : static_cast<u64>(static_cast<std::int64_t>(v));
  });
  const Inputs ints = singles(integer_edges());
  for (const auto& [name, mode] : kModes) {
    const std::string r(name);
    const auto convert = [&](auto from, auto zero) {
      volatile auto x = from;
      std::fesetround(mode);
      volatile decltype(zero) y = static_cast<decltype(zero)>(x);
      std::fesetround(FE_TONEAREST);
      return y;
    };
    check_table("cvt." + r + ".f32.s32 %fr, %ra;", 'f', ints,
                [&](u64 a, u64, u64) { return bits32(convert(static_cast<std::int32_t>(a), 0.0f)); });
    check_table("cvt." + r + ".f32.u64 %fr, %da;", 'f', ints, [&](u64 a, u64, u64) {
      // By hand, since the host's conversion goes through signed numbers.
      if (a < u64{1} << 63) return bits32(convert(static_cast<std::int64_t>(a), 0.0f));
      const float half = convert(static_cast<std::int64_t>(a >> 1 | (a & 1)), 0.0f);
      return bits32(half * 2);
    });
    check_table("cvt." + r + ".f64.s64 %gr, %da;", 'g', ints,
                [&](u64 a, u64, u64) { return bits64(convert(static_cast<std::int64_t>(a), 0.0)); });
    check_table("cvt." + r + ".f32.f64 %fr, %ga;", 'f', wide, [&](u64 a, u64, u64) { return nan32(convert(float64(a), 0.0f)); });
  }
  check_table("cvt.f64.f32 %gr, %fa;", 'g', in, [](u64 a, u64, u64) { return nan64(float32(a)); });
  check_table("cvt.rni.f32.f32 %fr, %fa;", 'f', in, [](u64 a, u64, u64) { return nan32(std::nearbyint(float32(a))); });
  check_table("cvt.rmi.ftz.f32.f32 %fr, %fa;", 'f', in, [](u64 a, u64, u64) { return nan32(std::floor(float32(flushed(a)))); });
  check_table("cvt.sat.f32.f32 %fr, %fa;", 'f', in,
              [](u64 a, u64, u64) { return bits32(float32(a) > 0 ? std::fmin(float32(a), 1.0f) : 0.0f); });
}

TEST_CASE("half and bfloat16: conversion of every pattern, arithmetic rounded once") {
  std::vector<u64> all;
  for (u64 k = 0; k < 65536; ++k) all.push_back(k);
  const auto half_value = [](u64 v) {
    const int e = static_cast<int>(v >> 10 & 31);
    const double f = static_cast<double>(v & 1023);
    const double r = e == 31 ? (f != 0 ? std::nan("") : HUGE_VAL) : e == 0 ? std::ldexp(f, -24) : std::ldexp(1024 + f, e - 25);
    return (v & 0x8000) != 0 ? -r : r;
  };
  check_table("cvt.f32.f16 %fr, %ha;", 'f', singles(all), [&](u64 a, u64, u64) { return nan32(static_cast<float>(half_value(a))); });
  check_table("cvt.f32.f16 %fr, %ha; cvt.rn.f16.f32 %hr, %fr;", 'h', singles(all),
              [&](u64 a, u64, u64) { return std::isnan(half_value(a)) ? 0x7fff : a; });
  check_table("cvt.f32.bf16 %fr, %ha;", 'f', singles(all), [&](u64 a, u64, u64) { return nan32(float32(a << 16)); });
  // Rounding: every half, and every middle between two, and what is just off it.
  std::vector<u64> between;
  for (u64 k = 0; k < 0x7c00; k += 7)
    for (const int off : {-1, 0, 1})
      between.push_back(
          static_cast<u64>(
              static_cast<std::int64_t>(bits32(static_cast<float>((half_value(k) + half_value(std::min<u64>(k + 1, 0x7bff))) / 2))) + off) &
          0xffffffff);
  check_table("cvt.rn.f16.f32 %hr, %fa;", 'h', singles(between), [&](u64 a, u64, u64) {
    const double v = float32(a);
    if (v != v) return u64{0x7fff};
    // The nearest of all patterns, ties to the even one: by search.
    u64 low = 0, high = 0x7c00;
    while (low < high) {
      const u64 mid = (low + high) / 2;
      const double x = mid == 0x7c00 ? 65536.0 : half_value(mid);
      if (x < v) low = mid + 1;
      else high = mid;
    }
    if (low == 0) return u64{0};
    const double up = low == 0x7c00 ? 65536.0 : half_value(low), down = half_value(low - 1);
    if (v - down < up - v) return low - 1;
    if (v - down > up - v) return low;
    return low % 2 == 0 ? low : low - 1;
  });
  const std::vector<u64> few{0,      0x8000, 1,      0x3ff,  0x400,  0x3c00, 0xbc00, 0x3c01, 0x3bff,
                             0x7bff, 0xfbff, 0x7c00, 0xfc00, 0x7e00, 0x3555, 0x0c01, 0x6400};
  // A double holds sums and products of halves; an fma of them needs more, which long double has.
  const auto round_half = [&](long double v) -> u64 {
    if (v != v) return 0x7fff;
    const u64 sign = std::signbit(v) ? 0x8000 : 0;
    const long double a = std::fabs(v);
    if (a >= 65520) return sign | 0x7c00;
    const int e = a == 0 ? -14 : std::max(std::ilogb(a), -14);
    const long double steps = std::nearbyint(std::ldexp(a, 10 - e));
    const auto n = static_cast<u64>(steps);
    return sign | (e == -14 && n < 1024 ? n : (static_cast<u64>(e + 15) << 10) + (n - 1024));
  };
  check_table("add.f16 %hr, %ha, %hb;", 'h', pairs(few),
              [&](u64 a, u64 b, u64) { return round_half(static_cast<long double>(half_value(a)) + half_value(b)); });
  check_table("sub.rn.f16 %hr, %ha, %hb;", 'h', pairs(few),
              [&](u64 a, u64 b, u64) { return round_half(static_cast<long double>(half_value(a)) - half_value(b)); });
  check_table("mul.f16 %hr, %ha, %hb;", 'h', pairs(few),
              [&](u64 a, u64 b, u64) { return round_half(static_cast<long double>(half_value(a)) * half_value(b)); });
  check_table("fma.rn.f16 %hr, %ha, %hb, %hc;", 'h', triples(few), [&](u64 a, u64 b, u64 c) {
    const long double p = static_cast<long double>(half_value(a)) * half_value(b), z = half_value(c);
    return round_half(p + z);
  });
  check_table(
      "mov.b32 %rt0, {%ha, %hb}; mov.b32 %rt1, {%hb, %hb}; fma.rn.f16x2 %rr, %rt0, %rt1, %rt0;", 'r', pairs(few), [&](u64 a, u64 b, u64) {
        const auto one = [&](u64 x, u64 y) { return round_half(static_cast<long double>(half_value(x)) * half_value(y) + half_value(x)); };
        return one(a, b) | one(b, b) << 16;
      });
  check_table("setp.lt.f16 %pr, %ha, %hb;", 'p', pairs(few), [&](u64 a, u64 b, u64) { return half_value(a) < half_value(b); });
  const std::vector<u64> brain{0, 0x8000, 1, 0x7f, 0x80, 0x3f80, 0xbf80, 0x3f81, 0x7f7f, 0x7f80, 0xff80, 0x7fc0, 0x3eab, 0x4120};
  const auto round_brain = [&](long double v) -> u64 {
    if (v != v) return 0x7fff;
    const u64 sign = std::signbit(v) ? 0x8000 : 0;
    const long double a = std::fabs(v);
    if (a >= std::ldexp(511.0L, 119)) return sign | 0x7f80;
    const int e = a == 0 ? -126 : std::max(std::ilogb(a), -126);
    const auto n = static_cast<u64>(std::nearbyint(std::ldexp(a, 7 - e)));
    return sign | (e == -126 && n < 128 ? n : (static_cast<u64>(e + 127) << 7) + (n - 128));
  };
  check_table("add.bf16 %hr, %ha, %hb;", 'h', pairs(brain),
              [&](u64 a, u64 b, u64) { return round_brain(static_cast<long double>(float32(a << 16)) + float32(b << 16)); });
  check_table("mul.bf16 %hr, %ha, %hb;", 'h', pairs(brain),
              [&](u64 a, u64 b, u64) { return round_brain(static_cast<long double>(float32(a << 16)) * float32(b << 16)); });
  check_table("cvt.rn.bf16.f32 %hr, %fa;", 'h', singles(float_edges()), [&](u64 a, u64, u64) { return round_brain(float32(a)); });
  check_table("cvt.rn.bf16x2.f32 %rr, %fa, %fb;", 'r', pairs(float_edges()),
              [&](u64 a, u64 b, u64) { return round_brain(float32(b)) | round_brain(float32(a)) << 16; });
  check_table("cvt.rna.tf32.f32 %rr, %fa;", 'r', singles(float_edges()), [&](u64 a, u64, u64) {
    if (float32(a) != float32(a)) return u64{0x7fffffff};
    if ((a & 0x7fffffff) == 0x7f800000) return a;
    return (a + 0x1000) & 0xffffe000;
  });
}

TEST_CASE("approximate functions are within an ulp of the exact value") {
  std::vector<u64> v;
  for (int k = -200; k < 200; ++k) v.push_back(bits32(static_cast<float>(k) * 0.173f));
  const auto near = [&](const std::string& op, auto f) {
    const std::vector<u64> got = evaluate(op + ".f32 %fr, %fa;", 'f', singles(v));
    for (std::size_t k = 0; k < v.size(); ++k) {
      const double exact = f(static_cast<double>(float32(v[k])));
      const double have = float32(got[k]);
      if (std::isnan(exact) || std::isinf(exact)) {
        CHECK(std::isfinite(have) == false);
      } else {
        CHECK(std::fabs(have - exact) <= std::fabs(exact) * 0x1p-23 + 0x1p-149);
      }
    }
  };
  near("sin.approx", [](double x) { return std::sin(x); });
  near("cos.approx", [](double x) { return std::cos(x); });
  near("ex2.approx", [](double x) { return std::exp2(x); });
  near("lg2.approx", [](double x) { return std::log2(x); });
  near("tanh.approx", [](double x) { return std::tanh(x); });
  near("rsqrt.approx", [](double x) { return 1 / std::sqrt(x); });
  near("rcp.approx", [](double x) { return 1 / x; });
  near("sqrt.approx", [](double x) { return std::sqrt(x); });
  check_table("div.approx.f32 %fr, %fa, %fb;", 'f',
              {{bits32(1.0f), bits32(0x1.8p127f), 0}, {bits32(-6.0f), bits32(3.0f), 0}, {0x7f800000, bits32(0x1p127f), 0}},
              [](u64 a, u64 b, u64) -> u64 {
                if (float32(b) > 0x1p126f) return std::isinf(float32(a)) ? 0x7fffffff : 0;
                return bits32(float32(a) / float32(b));
              });
}
