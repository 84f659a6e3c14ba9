// Integer arithmetic: add to max, mul and mad in all widths, carries, division, packed 16-bit pairs, dot products. The names that integers
// share with floats (add, mul, ...) are decoded here and handed to the decoders of floats by type.
#include "simcuda/ptx_integer.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_float.h"

namespace kiln::simcuda::ptx {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;
using i32 = std::int32_t;

// Division by zero and the quotient that overflows have no value in PTX: garbage that a program must not let through.
constexpr u64 kGarbage = 0x5eedf00d5eedf00dull;

template <class T, bool Remainder>
u64 divide(u64 x, u64 y) {
  const T a = static_cast<T>(x), b = static_cast<T>(y);
  if (b == 0) return bits(static_cast<T>(kGarbage));
  if constexpr (std::is_signed_v<T>) {
    if (b == -1 && a == std::numeric_limits<T>::min()) return bits(static_cast<T>(kGarbage));
  }
  return bits(static_cast<T>(Remainder ? a % b : a / b));
}

u64 saturated(std::int64_t v) {
  return bits(static_cast<i32>(std::clamp<std::int64_t>(v, std::numeric_limits<i32>::min(), std::numeric_limits<i32>::max())));
}

// Both halves of a packed pair.
template <auto F>
u64 halves(u64 a, u64 b) {
  return static_cast<u32>(F(a & 0xffff, b & 0xffff)) | static_cast<u64>(F(a >> 16 & 0xffff, b >> 16 & 0xffff)) << 16;
}

bool packed_integer(Type t) { return t == Type::U16x2 || t == Type::S16x2; }

template <bool Sub>
void add_sub(Decoder& d) {
  const bool sat = d.take("sat");
  const bool cc = d.take("cc");
  const Round round = d.take_round();
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (is_float(t) || t == Type::F16x2 || t == Type::BF16x2 || t == Type::F32x2) {
    if (cc) return d.bad_type();
    return Sub ? float_sub(d, t, round, ftz, sat) : float_add(d, t, round, ftz, sat);
  }
  if (round != Round::None) return d.error("Illegal rounding modifier for instruction '" + std::string(d.name()) + "'");
  if (ftz || (sat && t != Type::S32)) return d.bad_type();
  if (packed_integer(t)) {
    if (Sub) return d.bad_type();
    d.need(90, 80, "packed 16-bit arithmetic");
    constexpr auto f = [](u64 a, u64 b) -> u64 { return static_cast<std::uint16_t>(Sub ? a - b : a + b); };
    d.op.execute = &map2<halves<f>>;
  } else if (cc) {
    if (bits_of(t) < 32 || (!is_int(t))) return d.bad_type();
    return carry_add(d, t, Sub, false, true);
  } else if (sat) {
    d.op.execute = &map2<[](u64 a, u64 b) -> u64 {
      const std::int64_t x = static_cast<i32>(a), y = static_cast<i32>(b);
      return saturated(Sub ? x - y : x + y);
    }>;
  } else if (is_int(t)) {
    d.op.execute = for_integer(t, []<class T>() -> Execute {
      return &map2<[](u64 a, u64 b) -> u64 { return bits(static_cast<std::make_unsigned_t<T>>(Sub ? a - b : a + b)); }>;
    });
  }
  if (d.op.execute == nullptr) return d.bad_type();
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.d = d.out(0, t);
}

// add.cc and addc, sub.cc and subc: the condition code is a bit for each lane. With subtraction it is the borrow.
template <class T, bool Sub>
void carry_lanes(Warp& w, const Op& o, Mask m) {
  const u64 *a = w.in(o.a), *b = w.in(o.b);
  u64* d = w.out(o.d);
  const Mask before = o.code != 0 ? w.carry : 0;
  Mask after = 0;
  lanes(m, [&](unsigned l) {
    const unsigned __int128 x = static_cast<T>(a[l]), y = static_cast<T>(b[l]);
    const unsigned __int128 r = Sub ? x - y - (before >> l & 1) : x + y + (before >> l & 1);
    d[l] = static_cast<T>(r);
    after |= static_cast<Mask>(r >> (8 * sizeof(T)) & 1) << l;
  });
  if (o.sign) w.carry = (w.carry & ~m) | after;
}

template <bool Sub>
void add_carry(Decoder& d) {
  const bool cc = d.take("cc");
  const Type t = d.take_type();
  if (!is_int(t) || bits_of(t) < 32) return d.bad_type();
  carry_add(d, t, Sub, true, cc);
}

// mad.lo.cc, mad.hi.cc, madc.
template <class T, bool High>
void carry_mad(Warp& w, const Op& o, Mask m) {
  using U = std::make_unsigned_t<T>;
  const u64 *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c);
  u64* d = w.out(o.d);
  const Mask before = o.code != 0 ? w.carry : 0;
  Mask after = 0;
  lanes(m, [&](unsigned l) {
    const T x = static_cast<T>(a[l]), y = static_cast<T>(b[l]);
    const unsigned __int128 r =
        static_cast<unsigned __int128>(static_cast<U>(High ? high(x, y) : wrap_mul(x, y))) + static_cast<U>(c[l]) + (before >> l & 1);
    d[l] = static_cast<U>(r);
    after |= static_cast<Mask>(r >> (8 * sizeof(T)) & 1) << l;
  });
  if (o.sign) w.carry = (w.carry & ~m) | after;
}

void mad_with_carry(Decoder& d, bool in, bool out, Type t, bool is_high) {
  if (!is_int(t) || bits_of(t) < 32) return d.bad_type();
  d.op.execute = for_integer(t, [is_high]<class T>() -> Execute { return is_high ? &carry_mad<T, true> : &carry_mad<T, false>; });
  d.op.code = in ? 1 : 0;
  d.op.sign = out;
  if (!d.count(4)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.in(3, t);
  d.op.d = d.out(0, t);
}

Type doubled(Type t) {
  switch (t) {
    case Type::U16: return Type::U32;
    case Type::S16: return Type::S32;
    case Type::U32: return Type::U64;
    case Type::S32: return Type::S64;
    default: return Type::None;
  }
}

template <class T>
using Wide = std::conditional_t<sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, i32, u32>,
                                std::conditional_t<std::is_signed_v<T>, std::int64_t, u64>>;

template <bool Mad>
void multiply(Decoder& d) {
  const std::string_view part = d.take_any({"lo", "hi", "wide"});
  const bool cc = Mad && d.take("cc");
  const bool sat = d.take("sat");
  const Round round = d.take_round();
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (part.empty()) {
    if (is_float(t) || t == Type::F16x2 || t == Type::BF16x2 || t == Type::F32x2) {
      if (cc) return d.bad_type();
      return Mad ? float_fma(d, t, round, ftz, sat, false) : float_mul(d, t, round, ftz, sat);
    }
    return d.bad_type();
  }
  if (round != Round::None) return d.error("Illegal rounding modifier for instruction '" + std::string(d.name()) + "'");
  if (!is_int(t) || ftz || bits_of(t) < 16) return d.bad_type();
  if (cc) {
    if (part == "wide") return d.bad_type();
    return mad_with_carry(d, false, true, t, part == "hi");
  }
  if (sat && !(Mad && part == "hi" && t == Type::S32)) return d.bad_type();
  const Type result = part == "wide" ? doubled(t) : t;
  if (result == Type::None) return d.bad_type();
  if (!d.count(Mad ? 4 : 3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  if (Mad) d.op.c = d.in(3, result);
  d.op.d = d.out(0, result);
  if (sat) {
    d.op.execute = &map3<[](u64 a, u64 b, u64 c) -> u64 {
      return saturated(std::int64_t{high(static_cast<i32>(a), static_cast<i32>(b))} + static_cast<i32>(c));
    }>;
  } else if (part == "lo") {
    d.op.execute = for_integer(t, []<class T>() -> Execute {
      using U = std::make_unsigned_t<T>;
      if constexpr (Mad) return &map3<[](u64 a, u64 b, u64 c) -> u64 { return static_cast<U>(a * b + c); }>;
      else return &map2<[](u64 a, u64 b) -> u64 { return static_cast<U>(a * b); }>;
    });
  } else if (part == "hi") {
    d.op.execute = for_integer(t, []<class T>() -> Execute {
      if constexpr (Mad)
        return &map3<[](u64 a, u64 b, u64 c) -> u64 {
          return bits(wrap_add(high(static_cast<T>(a), static_cast<T>(b)), static_cast<T>(c)));
        }>;
      else return &map2<[](u64 a, u64 b) -> u64 { return bits(high(static_cast<T>(a), static_cast<T>(b))); }>;
    });
  } else {
    d.op.execute = for_integer(t, []<class T>() -> Execute {
      if constexpr (sizeof(T) <= 4) {
        using W = Wide<T>;
        if constexpr (Mad)
          return &map3<[](u64 a, u64 b, u64 c) -> u64 {
            return bits(wrap_add(wrap_mul<W>(static_cast<T>(a), static_cast<T>(b)), static_cast<W>(c)));
          }>;
        else return &map2<[](u64 a, u64 b) -> u64 { return bits(wrap_mul<W>(static_cast<T>(a), static_cast<T>(b))); }>;
      } else {
        return nullptr;
      }
    });
  }
}

void madc(Decoder& d) {
  const std::string_view part = d.take_any({"lo", "hi"});
  const bool cc = d.take("cc");
  const Type t = d.take_type();
  if (part.empty()) return d.bad_type();
  mad_with_carry(d, true, cc, t, part == "hi");
}

// mul24 and mad24: the low 24 bits of both, signed or not.
template <bool Mad>
void multiply24(Decoder& d) {
  const std::string_view part = d.take_any({"lo", "hi"});
  const bool sat = Mad && d.take("sat");
  const Type t = d.take_type();
  if (part.empty() || (t != Type::U32 && t != Type::S32) || (sat && (part != "hi" || t != Type::S32))) return d.bad_type();
  d.op.code = static_cast<std::uint8_t>((part == "hi" ? 1 : 0) | (t == Type::S32 ? 2 : 0) | (sat ? 4 : 0));
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64 *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c);
    u64* r = w.out(o.d);
    lanes(m, [&](unsigned l) {
      const auto narrow = [&](u64 v) -> std::int64_t {
        return (o.code & 2) != 0 ? static_cast<std::int64_t>(v << 40) >> 40 : static_cast<std::int64_t>(v & 0xffffff);
      };
      const std::int64_t p = narrow(a[l]) * narrow(b[l]);
      std::int64_t v = (o.code & 1) != 0 ? p >> 16 : p;
      if constexpr (Mad) {
        v = static_cast<i32>(v);
        if ((o.code & 4) != 0) {
          r[l] = saturated(v + static_cast<i32>(c[l]));
          return;
        }
        v += static_cast<std::int64_t>(c[l]);
      }
      r[l] = static_cast<u32>(v);
    });
  };
  if (!d.count(Mad ? 4 : 3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  if (Mad) d.op.c = d.in(3, t);
  d.op.d = d.out(0, t);
}

void fma(Decoder& d) {
  const Round round = d.take_round();
  const bool ftz = d.take("ftz"), sat = d.take("sat"), relu = d.take("relu");
  const Type t = d.take_type();
  if (!is_float(t) && t != Type::F16x2 && t != Type::BF16x2 && t != Type::F32x2) return d.bad_type();
  float_fma(d, t, round, ftz, sat, relu);
}

void sad(Decoder& d) {
  const Type t = d.take_type();
  if (!is_int(t) || bits_of(t) < 16) return d.bad_type();
  d.op.execute = for_integer(t, []<class T>() -> Execute {
    return &map3<[](u64 a, u64 b, u64 c) -> u64 {
      using U = std::make_unsigned_t<T>;
      const T x = static_cast<T>(a), y = static_cast<T>(b);
      return static_cast<U>(
          (x < y ? static_cast<U>(static_cast<U>(y) - static_cast<U>(x)) : static_cast<U>(static_cast<U>(x) - static_cast<U>(y))) + c);
    }>;
  });
  if (!d.count(4)) return;
  for (int k = 1; k < 4; ++k) (k == 1 ? d.op.a : k == 2 ? d.op.b : d.op.c) = d.in(static_cast<std::size_t>(k), t);
  d.op.d = d.out(0, t);
}

template <bool Remainder>
void division(Decoder& d) {
  const bool full = d.take("full"), approx = d.take("approx");
  const Round round = d.take_round();
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (!Remainder && (t == Type::F32 || t == Type::F64)) return float_div(d, t, round, ftz, approx, full);
  if (!is_int(t) || full || approx || ftz || round != Round::None || bits_of(t) < 16) return d.bad_type();
  d.op.execute = for_integer(t, []<class T>() -> Execute { return &map2<&divide<T, Remainder>>; });
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.d = d.out(0, t);
}

template <bool Absolute>
void sign(Decoder& d) {
  const bool ftz = d.take("ftz");
  const Type t = d.take_type();
  if (is_float(t) || t == Type::F16x2 || t == Type::BF16x2) return float_sign(d, t, ftz, Absolute);
  if (!is_signed(t) || ftz || bits_of(t) < 16) return d.bad_type();
  d.op.execute = for_integer(t, []<class T>() -> Execute {
    return &map1<[](u64 a) -> u64 {
      const T x = static_cast<T>(a);
      return bits(!Absolute || x < 0 ? wrap_sub<T>(0, x) : x);
    }>;
  });
  if (!d.count(2)) return;
  d.op.a = d.in(1, t);
  d.op.d = d.out(0, t);
}

template <class T, bool Max>
u64 pick(u64 a, u64 b) {
  const T x = static_cast<T>(a), y = static_cast<T>(b);
  return bits(Max ? std::max(x, y) : std::min(x, y));
}

template <bool Max>
void min_max(Decoder& d) {
  const bool ftz = d.take("ftz"), nan = d.take("NaN"), xorsign = d.take("xorsign") || d.take("xorsign.abs");
  const bool abs = d.take("abs"), relu = d.take("relu");
  const Type t = d.take_type();
  if (is_float(t) || t == Type::F16x2 || t == Type::BF16x2) {
    if (!relu && !xorsign && d.operands() == 4) return float_min_max_of_three(d, t, ftz, nan, abs, Max);
    if (xorsign != abs || relu) return d.bad_type();
    return float_min_max(d, t, ftz, nan, xorsign, Max);
  }
  if (ftz || nan || xorsign || abs || (relu && t != Type::S16x2 && t != Type::S32) || bits_of(t) < 16) return d.bad_type();
  if (relu || packed_integer(t)) d.need(90, 80, "packed 16-bit arithmetic");
  if (t == Type::U16x2) {
    constexpr auto f = [](u64 a, u64 b) { return pick<std::uint16_t, Max>(a, b); };
    d.op.execute = &map2<halves<f>>;
  } else if (t == Type::S16x2) {
    constexpr auto f = [](u64 a, u64 b) { return pick<std::int16_t, Max>(a, b); };
    constexpr auto g = [](u64 a, u64 b) -> u64 {
      return bits(std::max<std::int16_t>(0, static_cast<std::int16_t>(pick<std::int16_t, Max>(a, b))));
    };
    d.op.execute = relu ? &map2<halves<g>> : &map2<halves<f>>;
  } else if (relu) {
    d.op.execute = &map2<[](u64 a, u64 b) -> u64 { return bits(std::max<i32>(0, static_cast<i32>(pick<i32, Max>(a, b)))); }>;
  } else if (is_int(t)) {
    d.op.execute = for_integer(t, []<class T>() -> Execute { return &map2<[](u64 a, u64 b) -> u64 { return pick<T, Max>(a, b); }>; });
  }
  if (d.op.execute == nullptr) return d.bad_type();
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.d = d.out(0, t);
}

template <bool Two>
void dot(Decoder& d) {
  const bool upper = Two && d.take("hi");
  if (Two && !upper && !d.take("lo")) return d.bad_type();
  const Type ta = d.take_type(), tb = d.take_type();
  const auto word = [](Type t) { return t == Type::U32 || t == Type::S32; };
  if (!word(ta) || !word(tb)) return d.bad_type();
  d.op.code = static_cast<std::uint8_t>((ta == Type::S32 ? 1 : 0) | (tb == Type::S32 ? 2 : 0) | (upper ? 4 : 0));
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64 *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c);
    u64* r = w.out(o.d);
    lanes(m, [&](unsigned l) {
      u32 sum = static_cast<u32>(c[l]);
      const auto part = [](u64 v, unsigned at, unsigned width, bool is_signed) -> i32 {
        const u32 x = static_cast<u32>(v >> at) & ((1u << width) - 1);
        return is_signed ? static_cast<i32>(x << (32 - width)) >> (32 - width) : static_cast<i32>(x);
      };
      if constexpr (Two) {
        for (unsigned k = 0; k < 2; ++k)
          sum += static_cast<u32>(part(a[l], 16 * k, 16, (o.code & 1) != 0)) *
                 static_cast<u32>(part(b[l], 8 * k + ((o.code & 4) != 0 ? 16 : 0), 8, (o.code & 2) != 0));
      } else {
        for (unsigned k = 0; k < 4; ++k)
          sum += static_cast<u32>(part(a[l], 8 * k, 8, (o.code & 1) != 0)) * static_cast<u32>(part(b[l], 8 * k, 8, (o.code & 2) != 0));
      }
      r[l] = sum;
    });
  };
  if (!d.count(4)) return;
  const Type result = ta == Type::S32 || tb == Type::S32 ? Type::S32 : Type::U32;
  d.op.a = d.in(1, Type::B32);
  d.op.b = d.in(2, Type::B32);
  d.op.c = d.in(3, result);
  d.op.d = d.out(0, result);
}

}  // namespace

void carry_add(Decoder& d, Type t, bool subtract, bool in, bool out) {
  d.op.code = in ? 1 : 0;
  d.op.sign = out;
  const bool wide = bits_of(t) == 64;
  d.op.execute =
      subtract ? (wide ? &carry_lanes<u64, true> : &carry_lanes<u32, true>) : (wide ? &carry_lanes<u64, false> : &carry_lanes<u32, false>);
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.d = d.out(0, t);
}

void add_integer(DecodeTable& table) {
  table["add"] = &add_sub<false>;
  table["sub"] = &add_sub<true>;
  table["addc"] = &add_carry<false>;
  table["subc"] = &add_carry<true>;
  table["mul"] = &multiply<false>;
  table["mad"] = &multiply<true>;
  table["madc"] = &madc;
  table["mul24"] = &multiply24<false>;
  table["mad24"] = &multiply24<true>;
  table["fma"] = &fma;
  table["sad"] = &sad;
  table["div"] = &division<false>;
  table["rem"] = &division<true>;
  table["abs"] = &sign<true>;
  table["neg"] = &sign<false>;
  table["min"] = &min_max<false>;
  table["max"] = &min_max<true>;
  table["dp4a"] = &dot<false>;
  table["dp2a"] = &dot<true>;
}

}  // namespace kiln::simcuda::ptx
