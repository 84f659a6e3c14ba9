// f32 and f64 arithmetic. To the nearest with the host's operations; other roundings in ptx_round.cpp. Approximate instructions (ex2, lg2,
// sin, cos, tanh, rcp, rsqrt, sqrt, div) are computed in double and rounded once: nearer than a GPU's, within what the ISA allows.
#include "simcuda/ptx_float.h"

#include <cmath>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

// An f32 function with the two modifiers; f64 has none.
template <bool Ftz, bool Sat>
u64 finish(float v) {
  if constexpr (Sat) v = saturate(v);
  const u64 r = result(v);
  return Ftz ? flush32(r) : r;
}
template <bool Ftz>
float arg(u64 v) {
  return f32(Ftz ? flush32(v) : v);
}

template <char Op>
auto apply(auto a, auto b) {
  if constexpr (Op == '+') return a + b;
  else if constexpr (Op == '-') return a - b;
  else if constexpr (Op == '*') return a * b;
  else return a / b;
}

template <char Op, bool Ftz, bool Sat>
constexpr auto kBinary32 = [](u64 a, u64 b) -> u64 { return finish<Ftz, Sat>(apply<Op>(arg<Ftz>(a), arg<Ftz>(b))); };
template <char Op>
constexpr auto kBinary64 = [](u64 a, u64 b) -> u64 { return result(apply<Op>(f64(a), f64(b))); };
template <char Op>
constexpr auto kBinaryPair =
    [](u64 a, u64 b) -> u64 { return result(apply<Op>(f32(a), f32(b))) | result(apply<Op>(f32(a >> 32), f32(b >> 32))) << 32; };
template <char Op>
constexpr auto kBinaryPairFtz = [](u64 a, u64 b) -> u64 {
  const auto one = [](u64 x, u64 y) { return finish<true, false>(apply<Op>(arg<true>(x), arg<true>(y))); };
  return one(a, b) | one(a >> 32, b >> 32) << 32;
};

template <char Op>
Execute nearest(Type t, bool ftz, bool sat) {
  if (t == Type::F64) return ftz || sat ? nullptr : &map2<kBinary64<Op>>;
  if (t == Type::F32x2) return sat ? nullptr : ftz ? &map2<kBinaryPairFtz<Op>> : &map2<kBinaryPair<Op>>;
  if (ftz) return sat ? &map2<kBinary32<Op, true, true>> : &map2<kBinary32<Op, true, false>>;
  return sat ? &map2<kBinary32<Op, false, true>> : &map2<kBinary32<Op, false, false>>;
}

void binary_operands(Decoder& d, Type t) {
  if (d.op.execute == nullptr) return d.bad_type();
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.d = d.out(0, t);
}

void unary_operands(Decoder& d, Type t) {
  if (d.op.execute == nullptr) return d.bad_type();
  if (!d.count(2)) return;
  d.op.a = d.in(1, t);
  d.op.d = d.out(0, t);
}

template <char Op>
void plain(Decoder& d, Type t, Round round, bool ftz, bool sat) {
  if (t == Type::F32x2) d.need(100, 86, "packed f32 arithmetic");
  if (t == Type::F64 && (ftz || sat)) return d.bad_type();
  if (round == Round::None || round == Round::Nearest) {
    d.op.execute = nearest<Op>(t, ftz, sat);
  } else {
    if (t == Type::F32x2) return d.unknown("directed rounding of packed f32");
    d.op.execute = rounded(Op, t, round, ftz, sat);
  }
  binary_operands(d, t);
}

float fused(float a, float b, float c) { return std::fmaf(a, b, c); }

// Functions of one f32 that the ISA calls approximate, in double.
template <auto F, bool Ftz>
constexpr auto kApprox = [](u64 a) -> u64 { return finish<Ftz, false>(static_cast<float>(F(static_cast<double>(arg<Ftz>(a))))); };
template <auto F>
Execute approx(bool ftz) {
  return ftz ? &map1<kApprox<F, true>> : &map1<kApprox<F, false>>;
}

constexpr auto kSin = [](double x) { return std::sin(x); };
constexpr auto kCos = [](double x) { return std::cos(x); };
constexpr auto kLg2 = [](double x) { return std::log2(x); };
constexpr auto kEx2 = [](double x) { return std::exp2(x); };
constexpr auto kTanh = [](double x) { return std::tanh(x); };
constexpr auto kRcp = [](double x) { return 1.0 / x; };
constexpr auto kRsqrt = [](double x) { return 1.0 / std::sqrt(x); };
constexpr auto kSqrt = [](double x) { return std::sqrt(x); };

template <auto F>
void approximate(Decoder& d) {
  if (!d.take("approx")) return d.error("'.approx' modifier required for instruction '" + std::string(d.name()) + "'");
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (t == Type::F32) {
    d.op.execute = approx<F>(ftz);
  } else if ((t == Type::F16 || t == Type::F16x2 || t == Type::BF16 || t == Type::BF16x2) && (d.name() == "ex2" || d.name() == "tanh")) {
    // Rounded once to the half type, each half of a pair.
    static constexpr auto f16 = [](u64 a) -> u64 { return narrow(F(from_f16(a & 0xffff)), kF16, Round::Nearest); };
    static constexpr auto b16 = [](u64 a) -> u64 { return narrow(F(from_bf16(a & 0xffff)), kBF16, Round::Nearest); };
    static constexpr auto f16x2 = [](u64 a) -> u64 { return f16(a) | f16(a >> 16) << 16; };
    static constexpr auto b16x2 = [](u64 a) -> u64 { return b16(a) | b16(a >> 16) << 16; };
    d.need(t == Type::BF16 || t == Type::BF16x2 ? 90 : 75, t == Type::BF16 || t == Type::BF16x2 ? 78 : 70);
    d.op.execute = t == Type::F16 ? &map1<f16> : t == Type::BF16 ? &map1<b16> : t == Type::F16x2 ? &map1<f16x2> : &map1<b16x2>;
  }
  if ((t == Type::BF16 || t == Type::BF16x2) && d.name() == "ex2" && !ftz)
    return d.error(".ftz modifier required for instruction 'ex2.bf16'");
  if (d.name() == "tanh") d.need(75, 70);
  unary_operands(d, t);
}

void rcp(Decoder& d) {
  const bool is_approx = d.take("approx");
  const Round round = d.take_round();
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (t != Type::F32 && t != Type::F64) return d.bad_type();
  if (!is_approx && round == Round::None) { return d.error("Rounding modifier or '.approx' modifier required for instruction 'rcp'"); }
  if (is_approx && t == Type::F64) {
    if (!ftz) return d.bad_type();
    // The upper half of the result only; subnormal inputs and results are flushed.
    d.op.execute = &map1<[](u64 a) -> u64 {
      const u64 x = (a >> 52 & 0x7ff) == 0 ? a & (u64{1} << 63) : a;
      const u64 r = result(1.0 / f64(x));
      if (f64(r) != f64(r)) return r;
      return (r >> 52 & 0x7ff) == 0 ? r & (u64{1} << 63) : r & ~u64{0xffffffff};
    }>;
  } else if (is_approx) {
    d.op.execute = approx<kRcp>(ftz);
  } else if (round == Round::Nearest) {
    d.op.execute = t == Type::F64 ? &map1<[](u64 a) -> u64 { return result(1.0 / f64(a)); }>
                   : ftz          ? &map1<[](u64 a) -> u64 { return finish<true, false>(1.0f / arg<true>(a)); }>
                                  : &map1<[](u64 a) -> u64 { return finish<false, false>(1.0f / f32(a)); }>;
  } else {
    d.op.execute = rounded('r', t, round, ftz, false);
  }
  unary_operands(d, t);
}

void square_root(Decoder& d) {
  const bool is_approx = d.take("approx");
  const Round round = d.take_round();
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (t != Type::F32 && t != Type::F64) return d.bad_type();
  if (!is_approx && round == Round::None) { return d.error("Rounding modifier or '.approx' modifier required for instruction 'sqrt'"); }
  if (is_approx) {
    if (t == Type::F64) return d.bad_type();
    d.op.execute = approx<kSqrt>(ftz);
  } else if (round == Round::Nearest) {
    d.op.execute = t == Type::F64 ? &map1<[](u64 a) -> u64 { return result(std::sqrt(f64(a))); }>
                   : ftz          ? &map1<[](u64 a) -> u64 { return finish<true, false>(std::sqrt(arg<true>(a))); }>
                                  : &map1<[](u64 a) -> u64 { return finish<false, false>(std::sqrt(f32(a))); }>;
  } else {
    d.op.execute = rounded('s', t, round, ftz, false);
  }
  unary_operands(d, t);
}

void rsqrt(Decoder& d) {
  if (!d.take("approx")) return d.error("'.approx' modifier required for instruction 'rsqrt'");
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (t == Type::F32) {
    d.op.execute = approx<kRsqrt>(ftz);
  } else if (t == Type::F64) {
    d.op.execute = ftz ? &map1<[](u64 a) -> u64 {
      const u64 x = (a >> 52 & 0x7ff) == 0 ? a & (u64{1} << 63) : a;
      const u64 r = result(1.0 / std::sqrt(f64(x)));
      return f64(r) != f64(r) ? r : r & ~u64{0xffffffff};
    }>
                       : &map1<[](u64 a) -> u64 { return result(1.0 / std::sqrt(f64(a))); }>;
  }
  unary_operands(d, t);
}

void testp(Decoder& d) {
  const std::string_view what = d.take_any({"finite", "infinite", "number", "notanumber", "normal", "subnormal"});
  const Type t = d.take_type();
  if (what.empty() || (t != Type::F32 && t != Type::F64)) return d.bad_type();
  if (!d.count(2)) return;
  d.op.code = static_cast<std::uint8_t>(what == "finite"       ? 0
                                        : what == "infinite"   ? 1
                                        : what == "number"     ? 2
                                        : what == "notanumber" ? 3
                                        : what == "normal"     ? 4
                                                               : 5);
  d.op.bytes = static_cast<std::uint8_t>(bytes_of(t));
  d.op.a = d.in(1, t);
  d.op.p = d.predicate_out(d.operand(0));
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64* a = w.in(o.a);
    Mask r = 0;
    lanes(m, [&](unsigned l) {
      const int c = o.bytes == 4 ? std::fpclassify(f32(a[l])) : std::fpclassify(f64(a[l]));
      const bool hit[] = {c != FP_NAN && c != FP_INFINITE, c == FP_INFINITE, c != FP_NAN, c == FP_NAN, c == FP_NORMAL, c == FP_SUBNORMAL};
      r |= static_cast<Mask>(hit[o.code]) << l;
    });
    w.set(o.p, r, m);
  };
}

void copysign(Decoder& d) {
  const Type t = d.take_type();
  if (t == Type::F32) {
    d.op.execute = &map2<[](u64 a, u64 b) -> u64 { return (a & 0x80000000u) | (b & 0x7fffffffu); }>;
  } else if (t == Type::F64) {
    d.op.execute = &map2<[](u64 a, u64 b) -> u64 { return (a & u64{1} << 63) | (b & ~(u64{1} << 63)); }>;
  }
  binary_operands(d, t);
}

template <class T, bool Ftz, bool NaN, bool XorSign, bool Max>
u64 extreme(u64 a, u64 b) {
  const auto value = [](u64 v) {
    if constexpr (sizeof(T) == 4) return f32(v);
    else return f64(v);
  };
  if constexpr (Ftz) {
    a = flush32(a);
    b = flush32(b);
  }
  constexpr u64 sign = u64{1} << (8 * sizeof(T) - 1);
  const u64 flip = XorSign ? (a ^ b) & sign : 0;
  if constexpr (XorSign) {
    a &= ~sign;
    b &= ~sign;
  }
  const T x = value(a), y = value(b);
  constexpr u64 nan = sizeof(T) == 4 ? kNaN32 : kNaN64;
  if (x != x || y != y) {
    if ((x != x && y != y) || NaN) return nan;
    return (x != x ? b : a) | flip;
  }
  u64 r = (x < y) != Max ? a : b;
  if (x == y) r = ((a & sign) != 0) != Max ? a : b;  // -0 is less than +0
  return r | flip;
}

}  // namespace

void float_add(Decoder& d, Type t, Round round, bool ftz, bool sat) {
  if (is_half(t)) {
    if (round != Round::None && round != Round::Nearest) return d.bad_type();
    return half_add(d, t, false, ftz, sat);
  }
  plain<'+'>(d, t, round, ftz, sat);
}

void float_sub(Decoder& d, Type t, Round round, bool ftz, bool sat) {
  if (is_half(t)) {
    if (round != Round::None && round != Round::Nearest) return d.bad_type();
    return half_add(d, t, true, ftz, sat);
  }
  plain<'-'>(d, t, round, ftz, sat);
}

void float_mul(Decoder& d, Type t, Round round, bool ftz, bool sat) {
  if (is_half(t)) {
    if (round != Round::None && round != Round::Nearest) return d.bad_type();
    return half_mul(d, t, ftz, sat);
  }
  plain<'*'>(d, t, round, ftz, sat);
}

void float_fma(Decoder& d, Type t, Round round, bool ftz, bool sat, bool relu) {
  if (round == Round::None) return d.error("Rounding modifier required for instruction '" + std::string(d.name()) + "'");
  if (is_half(t)) {
    if (round != Round::Nearest) return d.bad_type();
    return half_fma(d, t, ftz, sat, relu);
  }
  if (relu || (t == Type::F64 && (ftz || sat))) return d.bad_type();
  if (t == Type::F32x2) {
    d.need(100, 86, "packed f32 arithmetic");
    if (round != Round::Nearest || sat) return d.unknown("directed rounding of packed f32");
    static constexpr auto one = [](u64 a, u64 b, u64 c) -> u64 { return result(fused(f32(a), f32(b), f32(c))); };
    static constexpr auto flushed = [](u64 a, u64 b, u64 c) -> u64 {
      return finish<true, false>(fused(arg<true>(a), arg<true>(b), arg<true>(c)));
    };
    d.op.execute = ftz ? &map3<[](u64 a, u64 b, u64 c) -> u64 { return flushed(a, b, c) | flushed(a >> 32, b >> 32, c >> 32) << 32; }>
                       : &map3<[](u64 a, u64 b, u64 c) -> u64 { return one(a, b, c) | one(a >> 32, b >> 32, c >> 32) << 32; }>;
  } else if (round != Round::Nearest) {
    d.op.execute = rounded('f', t, round, ftz, sat);
  } else if (t == Type::F64) {
    d.op.execute = &map3<[](u64 a, u64 b, u64 c) -> u64 { return result(std::fma(f64(a), f64(b), f64(c))); }>;
  } else {
    d.op.execute =
        ftz ? (sat ? &map3<[](u64 a, u64 b, u64 c) -> u64 { return finish<true, true>(fused(arg<true>(a), arg<true>(b), arg<true>(c))); }>
                   : &map3<[](u64 a, u64 b, u64 c) -> u64 { return finish<true, false>(fused(arg<true>(a), arg<true>(b), arg<true>(c))); }>)
            : (sat ? &map3<[](u64 a, u64 b, u64 c) -> u64 { return finish<false, true>(fused(f32(a), f32(b), f32(c))); }>
                   : &map3<[](u64 a, u64 b, u64 c) -> u64 { return finish<false, false>(fused(f32(a), f32(b), f32(c))); }>);
  }
  if (!d.count(4)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.in(3, t);
  d.op.d = d.out(0, t);
}

void float_div(Decoder& d, Type t, Round round, bool ftz, bool approx, bool full) {
  if (!approx && !full && round == Round::None) {
    return d.error("Rounding modifier or '.approx' modifier required for instruction 'div'");
  }
  if (t == Type::F64 && (approx || full || ftz)) return d.bad_type();
  if (approx) {
    // a * (1 / b), with its narrower range: a huge divisor gives zero.
    static constexpr auto f = [](float a, float b) -> float {
      if (std::fabs(b) > 0x1p126f && std::isfinite(b))
        return std::isinf(a) ? std::nanf("") : std::copysign(0.0f, (std::signbit(a) != std::signbit(b)) ? -1.0f : 1.0f);
      return a / b;
    };
    d.op.execute = ftz ? &map2<[](u64 a, u64 b) -> u64 { return finish<true, false>(f(arg<true>(a), arg<true>(b))); }>
                       : &map2<[](u64 a, u64 b) -> u64 { return finish<false, false>(f(f32(a), f32(b))); }>;
  } else if (full || round == Round::Nearest) {
    d.op.execute = nearest<'/'>(t, ftz, false);
  } else {
    d.op.execute = rounded('/', t, round, ftz, false);
  }
  binary_operands(d, t);
}

void float_sign(Decoder& d, Type t, bool ftz, bool absolute) {
  if (is_half(t)) return half_sign(d, t, ftz, absolute);
  if (t == Type::F64) {
    if (ftz) return d.bad_type();
    d.op.execute =
        absolute ? &map1<[](u64 a) -> u64 { return a & ~(u64{1} << 63); }> : &map1<[](u64 a) -> u64 { return a ^ u64{1} << 63; }>;
  } else if (ftz) {
    d.op.execute = absolute ? &map1<[](u64 a) -> u64 { return flush32(a) & 0x7fffffffu; }>
                            : &map1<[](u64 a) -> u64 { return flush32(a) ^ 0x80000000u; }>;
  } else {
    d.op.execute = absolute ? &map1<[](u64 a) -> u64 { return a & 0x7fffffffu; }>
                            : &map1<[](u64 a) -> u64 { return (a ^ 0x80000000u) & 0xffffffffu; }>;
  }
  unary_operands(d, t);
}

template <bool Ftz, bool NaN, bool Abs, bool Max>
u64 extreme_of_three(u64 a, u64 b, u64 c) {
  constexpr u64 kept = Abs ? 0x7fffffff : ~u64{0};
  return extreme<float, Ftz, NaN, false, Max>(extreme<float, Ftz, NaN, false, Max>(a & kept, b & kept), c & kept);
}

void float_min_max_of_three(Decoder& d, Type t, bool ftz, bool nan, bool abs, bool max) {
  if (t != Type::F32) return d.mismatch();
  d.need(100, 88, std::string(d.name()) + ".f32 with 3 input operands");
  static constexpr auto kTable = []<bool Max, std::size_t... I>(std::bool_constant<Max>, std::index_sequence<I...>) {
    return std::array<Execute, 8>{&map3<&extreme_of_three<(I & 1) != 0, (I & 2) != 0, (I & 4) != 0, Max>>...};
  };
  const std::size_t k = (ftz ? 1u : 0u) | (nan ? 2u : 0u) | (abs ? 4u : 0u);
  constexpr std::make_index_sequence<8> all;
  d.op.execute = max ? kTable(std::true_type{}, all)[k] : kTable(std::false_type{}, all)[k];
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.in(3, t);
  d.op.d = d.out(0, t);
}

void float_min_max(Decoder& d, Type t, bool ftz, bool nan, bool xorsign, bool max) {
  if (is_half(t)) return half_min_max(d, t, ftz, nan, xorsign, max);
  if (t == Type::F64 && (ftz || nan || xorsign)) return d.bad_type();
  if (nan) d.need(80, 70, "min and max with .NaN");
  if (xorsign) d.need(86, 72, "min and max with .xorsign");
  const auto choose = [&]<bool Max>() -> Execute {
    if (t == Type::F64) return &map2<&extreme<double, false, false, false, Max>>;
    const int k = (ftz ? 1 : 0) | (nan ? 2 : 0) | (xorsign ? 4 : 0);
    constexpr Execute table[] = {&map2<&extreme<float, false, false, false, Max>>, &map2<&extreme<float, true, false, false, Max>>,
                                 &map2<&extreme<float, false, true, false, Max>>,  &map2<&extreme<float, true, true, false, Max>>,
                                 &map2<&extreme<float, false, false, true, Max>>,  &map2<&extreme<float, true, false, true, Max>>,
                                 &map2<&extreme<float, false, true, true, Max>>,   &map2<&extreme<float, true, true, true, Max>>};
    return table[k];
  };
  d.op.execute = max ? choose.template operator()<true>() : choose.template operator()<false>();
  binary_operands(d, t);
}

void add_float(DecodeTable& table) {
  table["rcp"] = &rcp;
  table["sqrt"] = &square_root;
  table["rsqrt"] = &rsqrt;
  table["sin"] = &approximate<kSin>;
  table["cos"] = &approximate<kCos>;
  table["lg2"] = &approximate<kLg2>;
  table["ex2"] = &approximate<kEx2>;
  table["tanh"] = &approximate<kTanh>;
  table["testp"] = &testp;
  table["copysign"] = &copysign;
}

}  // namespace kiln::simcuda::ptx
