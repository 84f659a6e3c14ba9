// f16 and bf16 arithmetic and their packed pairs: exact in double, or to odd where a double is too short, then rounded once.
#include <cmath>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_float.h"
#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

constexpr u64 kSign = 0x8000;

template <bool Bf>
double from(u64 v) {
  return Bf ? from_bf16(v & 0xffff) : from_f16(v & 0xffff);
}
template <bool Bf>
u64 flush(u64 v) {
  return (v & (Bf ? 0x7f80 : 0x7c00)) == 0 ? v & kSign : v;
}
template <bool Bf, bool Ftz>
double arg(u64 v) {
  v &= 0xffff;
  return from<Bf>(Ftz ? flush<Bf>(v) : v);
}
template <bool Bf, bool Ftz, bool Sat>
u64 finish(double v) {
  if constexpr (Sat) v = saturate(v);
  const u64 r = narrow(v, Bf ? kBF16 : kF16, Round::Nearest);
  return Ftz ? flush<Bf>(r) : r;
}

template <auto F>
constexpr auto kPair1 = [](u64 a) -> u64 { return F(a & 0xffff) | F(a >> 16 & 0xffff) << 16; };
template <auto F>
constexpr auto kPair2 = [](u64 a, u64 b) -> u64 { return F(a & 0xffff, b & 0xffff) | F(a >> 16 & 0xffff, b >> 16 & 0xffff) << 16; };
template <auto F>
constexpr auto kPair3 = [](u64 a, u64 b, u64 c) -> u64 {
  return F(a & 0xffff, b & 0xffff, c & 0xffff) | F(a >> 16 & 0xffff, b >> 16 & 0xffff, c >> 16 & 0xffff) << 16;
};

bool packed(Type t) { return t == Type::F16x2 || t == Type::BF16x2; }
bool brain(Type t) { return t == Type::BF16 || t == Type::BF16x2; }

// maker<Bf, Ftz, Sat>() gives the function; the modifiers become template arguments.
template <class Maker>
Execute choose(Type t, bool ftz, bool sat, Maker make) {
  if (brain(t)) {
    if (sat) return nullptr;
    return ftz ? nullptr : make.template operator()<true, false, false>();
  }
  if (ftz) return sat ? make.template operator()<false, true, true>() : make.template operator()<false, true, false>();
  return sat ? make.template operator()<false, false, true>() : make.template operator()<false, false, false>();
}

template <bool Bf, bool Ftz, bool Sat>
constexpr auto kAdd = [](u64 a, u64 b) -> u64 { return finish<Bf, Ftz, Sat>(add_to_odd(arg<Bf, Ftz>(a), arg<Bf, Ftz>(b))); };
template <bool Bf, bool Ftz, bool Sat>
constexpr auto kSub = [](u64 a, u64 b) -> u64 { return finish<Bf, Ftz, Sat>(add_to_odd(arg<Bf, Ftz>(a), -arg<Bf, Ftz>(b))); };
template <bool Bf, bool Ftz, bool Sat>
constexpr auto kMul = [](u64 a, u64 b) -> u64 { return finish<Bf, Ftz, Sat>(arg<Bf, Ftz>(a) * arg<Bf, Ftz>(b)); };
template <bool Bf, bool Ftz, bool Sat, bool Relu>
constexpr auto kFma = [](u64 a, u64 b, u64 c) -> u64 {
  const double v = add_to_odd(arg<Bf, Ftz>(a) * arg<Bf, Ftz>(b), arg<Bf, Ftz>(c));
  if (Relu && v == v && !(v > 0)) return u64{0};
  return finish<Bf, Ftz, Sat>(v);
};

template <bool Bf, bool Ftz, bool NaN, bool XorSign, bool Max>
u64 extreme(u64 a, u64 b) {
  if constexpr (Ftz) {
    a = flush<Bf>(a);
    b = flush<Bf>(b);
  }
  const u64 flip = XorSign ? (a ^ b) & kSign : 0;
  if constexpr (XorSign) {
    a &= ~kSign;
    b &= ~kSign;
  }
  const double x = from<Bf>(a), y = from<Bf>(b);
  if (x != x || y != y) {
    if ((x != x && y != y) || NaN) return kNaN16;
    return (x != x ? b : a) | flip;
  }
  u64 r = (x < y) != Max ? a : b;
  if (x == y) r = ((a & kSign) != 0) != Max ? a : b;
  return r | flip;
}

void operands(Decoder& d, Type t, std::size_t inputs) {
  if (d.op.execute == nullptr) return d.bad_type();
  if (!d.count(inputs + 1)) return;
  d.op.a = d.in(1, t);
  if (inputs > 1) d.op.b = d.in(2, t);
  if (inputs > 2) d.op.c = d.in(3, t);
  d.op.d = d.out(0, t);
}

}  // namespace

bool is_half(Type t) { return t == Type::F16 || t == Type::BF16 || packed(t); }

void half_add(Decoder& d, Type t, bool subtract, bool ftz, bool sat) {
  if (brain(t)) d.need(90, 78, "bf16 arithmetic");
  d.op.execute = choose(t, ftz, sat, [&]<bool Bf, bool Ftz, bool Sat>() -> Execute {
    if (subtract) return packed(t) ? &map2<kPair2<kSub<Bf, Ftz, Sat>>> : &map2<kSub<Bf, Ftz, Sat>>;
    return packed(t) ? &map2<kPair2<kAdd<Bf, Ftz, Sat>>> : &map2<kAdd<Bf, Ftz, Sat>>;
  });
  operands(d, t, 2);
}

void half_mul(Decoder& d, Type t, bool ftz, bool sat) {
  if (brain(t)) d.need(90, 78, "bf16 arithmetic");
  d.op.execute = choose(t, ftz, sat, [&]<bool Bf, bool Ftz, bool Sat>() -> Execute {
    return packed(t) ? &map2<kPair2<kMul<Bf, Ftz, Sat>>> : &map2<kMul<Bf, Ftz, Sat>>;
  });
  operands(d, t, 2);
}

void half_fma(Decoder& d, Type t, bool ftz, bool sat, bool relu) {
  if (brain(t) || relu) d.need(80, 70, brain(t) ? "bf16 arithmetic" : "fma with .relu");
  if (relu && sat) return d.bad_type();
  d.op.execute = choose(t, ftz, sat, [&]<bool Bf, bool Ftz, bool Sat>() -> Execute {
    if (relu) return packed(t) ? &map3<kPair3<kFma<Bf, Ftz, Sat, true>>> : &map3<kFma<Bf, Ftz, Sat, true>>;
    return packed(t) ? &map3<kPair3<kFma<Bf, Ftz, Sat, false>>> : &map3<kFma<Bf, Ftz, Sat, false>>;
  });
  operands(d, t, 3);
}

void half_sign(Decoder& d, Type t, bool ftz, bool absolute) {
  if (brain(t)) d.need(80, 70, "bf16 arithmetic");
  d.op.execute = choose(t, ftz, false, [&]<bool Bf, bool Ftz, bool Sat>() -> Execute {
    static constexpr auto abs = [](u64 a) -> u64 { return (Ftz ? flush<Bf>(a & 0xffff) : a) & 0x7fff; };
    static constexpr auto neg = [](u64 a) -> u64 { return ((Ftz ? flush<Bf>(a & 0xffff) : a) ^ kSign) & 0xffff; };
    if (absolute) return packed(t) ? &map1<kPair1<abs>> : &map1<abs>;
    return packed(t) ? &map1<kPair1<neg>> : &map1<neg>;
  });
  operands(d, t, 1);
}

void half_min_max(Decoder& d, Type t, bool ftz, bool nan, bool xorsign, bool max) {
  d.need(80, 70, "min and max of halves");
  if (xorsign) d.need(86, 72, "min and max with .xorsign");
  d.op.execute = choose(t, ftz, false, [&]<bool Bf, bool Ftz, bool Sat>() -> Execute {
    const auto pick = [&]<bool NaN, bool Xor>() -> Execute {
      if (max) return packed(t) ? &map2<kPair2<&extreme<Bf, Ftz, NaN, Xor, true>>> : &map2<&extreme<Bf, Ftz, NaN, Xor, true>>;
      return packed(t) ? &map2<kPair2<&extreme<Bf, Ftz, NaN, Xor, false>>> : &map2<&extreme<Bf, Ftz, NaN, Xor, false>>;
    };
    if (nan) return xorsign ? pick.template operator()<true, true>() : pick.template operator()<true, false>();
    return xorsign ? pick.template operator()<false, true>() : pick.template operator()<false, false>();
  });
  operands(d, t, 2);
}

}  // namespace kiln::simcuda::ptx
