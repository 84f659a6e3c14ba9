// cvt between all types, with its rounding, saturation, flushing and NaN rules, and its packed forms.
#include <cmath>
#include <limits>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_special.h"
#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

// Everything about one cvt that its function needs, packed into an Op's imm.
struct How {
  Type to = Type::None, from = Type::None;
  Round round = Round::None, integral = Round::None;
  bool ftz = false, sat = false, relu = false, finite = false;
};
std::int64_t packed(const How& h) {
  return static_cast<std::int64_t>(h.to) | static_cast<std::int64_t>(h.from) << 8 | static_cast<std::int64_t>(h.round) << 16 |
         static_cast<std::int64_t>(h.integral) << 24 | (h.ftz ? 1ll << 32 : 0) | (h.sat ? 1ll << 33 : 0) | (h.relu ? 1ll << 34 : 0) |
         (h.finite ? 1ll << 35 : 0);
}
How unpacked(std::int64_t v) {
  return {static_cast<Type>(v & 0xff),
          static_cast<Type>(v >> 8 & 0xff),
          static_cast<Round>(v >> 16 & 0xff),
          static_cast<Round>(v >> 24 & 0xff),
          (v >> 32 & 1) != 0,
          (v >> 33 & 1) != 0,
          (v >> 34 & 1) != 0,
          (v >> 35 & 1) != 0};
}

double value_of(u64 v, const How& h) {
  switch (h.from) {
    case Type::F16: return from_f16(v & 0xffff);
    case Type::BF16: return from_bf16(v & 0xffff);
    case Type::F32: return static_cast<double>(f32(h.ftz ? flush32(v & 0xffffffffu) : v));
    default: return f64(v);
  }
}

double integral(double x, Round r) {
  switch (r) {
    case Round::Nearest: return std::nearbyint(x);
    case Round::Zero: return std::trunc(x);
    case Round::Down: return std::floor(x);
    case Round::Up: return std::ceil(x);
    default: return x;
  }
}

u64 to_float(double x, const How& h) {
  if (h.sat) x = saturate(x);
  if (h.relu && x == x && !(x > 0)) x = 0;
  Format f = kF32;
  switch (h.to) {
    case Type::F64: return result(x);
    case Type::F16: f = kF16; break;
    case Type::BF16: f = kBF16; break;
    case Type::TF32: f = kTF32; break;
    default: break;
  }
  u64 r = narrow(x, f, h.round);
  if (h.finite && x == x) {
    const u64 sign = u64{1} << (f.exponent_bits + f.fraction_bits), infinity = ((u64{1} << f.exponent_bits) - 1) << f.fraction_bits;
    if ((r & ~sign) == infinity) r = (r & sign) | (infinity - 1);
  }
  if (h.to == Type::TF32) r = x == x ? r << 13 : kNaN32;
  return h.to == Type::F32 && h.ftz ? flush32(r) : r;
}

u64 float_to_int(double x, Type to) {
  const unsigned width = bits_of(to);
  const double low = is_signed(to) ? -std::ldexp(1.0, static_cast<int>(width) - 1) : 0.0;
  const double limit = std::ldexp(1.0, static_cast<int>(width) - (is_signed(to) ? 1 : 0));
  if (x >= limit) return is_signed(to) ? (u64{1} << (width - 1)) - 1 : (width == 64 ? ~u64{0} : (u64{1} << width) - 1);
  if (x < low) x = low;
  return is_signed(to) ? static_cast<u64>(static_cast<std::int64_t>(x)) : static_cast<u64>(x);
}

// An integer as f64 with a directed rounding: the nearest double, moved when it is on the wrong side.
double directed(__int128 v, Round round) {
  double r = v < 0 ? -static_cast<double>(static_cast<u64>(-v)) : static_cast<double>(static_cast<u64>(v));
  const auto exact = static_cast<__int128>(r);
  const bool zero_down = round == Round::Zero && v > 0, zero_up = round == Round::Zero && v < 0;
  if ((round == Round::Down || zero_down) && exact > v) r = std::nextafter(r, -HUGE_VAL);
  if ((round == Round::Up || zero_up) && exact < v) r = std::nextafter(r, HUGE_VAL);
  return r;
}

std::int64_t extended(u64 v, Type t) {
  const unsigned shift = 64 - bits_of(t);
  return is_signed(t) ? static_cast<std::int64_t>(v << shift) >> shift : static_cast<std::int64_t>(v << shift >> shift);
}

u64 int_to_int(u64 v, const How& h) {
  const std::int64_t x = extended(v, h.from);
  if (!h.sat) return static_cast<u64>(extended(static_cast<u64>(x), h.to));
  const __int128 exact = is_signed(h.from) ? static_cast<__int128>(x) : static_cast<__int128>(static_cast<u64>(x));
  const unsigned width = bits_of(h.to);
  const __int128 low = is_signed(h.to) ? -(static_cast<__int128>(1) << (width - 1)) : 0;
  const __int128 top = (static_cast<__int128>(1) << (is_signed(h.to) ? width - 1 : width)) - 1;
  return static_cast<u64>(static_cast<std::int64_t>(exact < low ? low : exact > top ? top : exact));
}

u64 int_to_float(u64 v, const How& h) {
  const std::int64_t x = extended(v, h.from);
  if (h.to == Type::F64) {
    const __int128 exact = is_signed(h.from) ? static_cast<__int128>(x) : static_cast<__int128>(static_cast<u64>(x));
    const double r = directed(exact, h.round);
    return raw(h.sat ? saturate(r) : r);
  }
  return to_float(is_signed(h.from) ? to_odd(x) : to_odd(static_cast<u64>(x)), h);
}

u64 convert(u64 v, const How& h) {
  const bool from_float = is_float(h.from), to_a_float = is_float(h.to) || h.to == Type::TF32;
  if (!from_float) return to_a_float ? int_to_float(v, h) : int_to_int(v, h);
  const double x = integral(value_of(v, h), h.integral);
  if (to_a_float) return to_float(x, h);
  if (x != x) {
    const bool wide = h.from == Type::F64 || bits_of(h.to) == 64;
    return wide ? static_cast<u64>(extended(u64{1} << (bits_of(h.to) - 1), h.to)) : 0;
  }
  return float_to_int(x, h.to);
}

void execute(Warp& w, const Op& o, Mask m) {
  const How h = unpacked(o.imm);
  const u64* a = w.in(o.a);
  u64* d = w.out(o.d);
  const u64 keep = o.bits >= 64 ? ~u64{0} : (u64{1} << o.bits) - 1;
  lanes(m, [&](unsigned l) { d[l] = convert(a[l], h) & keep; });
}

// The frequent ones, compiled for their types.
template <class From, class To>
void extend(Warp& w, const Op& o, Mask m) {
  const u64* a = w.in(o.a);
  u64* d = w.out(o.d);
  const u64 keep = o.bits >= 64 ? ~u64{0} : (u64{1} << o.bits) - 1;
  lanes(m, [&](unsigned l) { d[l] = static_cast<u64>(static_cast<std::int64_t>(static_cast<To>(static_cast<From>(a[l])))) & keep; });
}
template <class From>
Execute extend_to(Type to) {
  switch (to) {
    case Type::U8: return &extend<From, std::uint8_t>;
    case Type::S8: return &extend<From, std::int8_t>;
    case Type::U16: return &extend<From, std::uint16_t>;
    case Type::S16: return &extend<From, std::int16_t>;
    case Type::U32: return &extend<From, std::uint32_t>;
    case Type::S32: return &extend<From, std::int32_t>;
    default: return &extend<From, u64>;
  }
}
Execute extend_from(Type from, Type to) {
  switch (from) {
    case Type::U8: return extend_to<std::uint8_t>(to);
    case Type::S8: return extend_to<std::int8_t>(to);
    case Type::U16: return extend_to<std::uint16_t>(to);
    case Type::S16: return extend_to<std::int16_t>(to);
    case Type::U32: return extend_to<std::uint32_t>(to);
    case Type::S32: return extend_to<std::int32_t>(to);
    default: return extend_to<u64>(to);
  }
}

// Two values into one register, or back.
void execute_pair(Warp& w, const Op& o, Mask m) {
  How h = unpacked(o.imm);
  const u64 *a = w.in(o.a), *b = w.in(o.b);
  u64* d = w.out(o.d);
  const Type to = h.to;
  h.to = to == Type::F16x2 ? Type::F16 : Type::BF16;
  lanes(m, [&](unsigned l) {
    const auto one = [&](u64 v) -> u64 {
      const double x = value_of(v, h);
      if (to == Type::E4M3x2) return narrow_e4m3(x, h.relu);
      if (to == Type::E5M2x2) {
        if (h.relu && x == x && !(x > 0)) return 0;
        u64 r = narrow(x, kE5M2, Round::Nearest);
        if (x == x && (r & 0x7f) == 0x7c) r = (r & 0x80) | 0x7b;
        return r;
      }
      return to_float(x, h);
    };
    const unsigned shift = to == Type::E4M3x2 || to == Type::E5M2x2 ? 8 : 16;
    if (h.from == Type::F16x2) {
      d[l] = (to == Type::E4M3x2 ? narrow_e4m3(from_f16(a[l] & 0xffff), h.relu) | narrow_e4m3(from_f16(a[l] >> 16 & 0xffff), h.relu) << 8
                                 : (narrow(from_f16(a[l] & 0xffff), kE5M2, Round::Nearest) |
                                    narrow(from_f16(a[l] >> 16 & 0xffff), kE5M2, Round::Nearest) << 8));
    } else {
      d[l] = one(b[l]) | one(a[l]) << shift;
    }
  });
}

void execute_unpair(Warp& w, const Op& o, Mask m) {
  const How h = unpacked(o.imm);
  const u64* a = w.in(o.a);
  u64* d = w.out(o.d);
  lanes(m, [&](unsigned l) {
    const auto one = [&](u64 v) {
      return narrow(h.from == Type::E4M3x2 ? widen_e4m3(v & 0xff) : widen(v & 0xff, kE5M2), kF16, Round::Nearest);
    };
    d[l] = one(a[l]) | one(a[l] >> 8) << 16;
  });
}

void pack(Decoder& d) {
  // cvt.pack.sat.dtype.s32 d, a, b: a above b; .b32: and c above both.
  if (!d.take("sat")) return d.bad_type();
  const Type to = d.take_type(), from = d.take_type(), third = d.take_type();
  if (from != Type::S32 || bits_of(to) > 16 || !is_int(to)) return d.bad_type();
  if (bits_of(to) == 8 && third != Type::B32) return d.bad_type();
  if (!d.count(third == Type::B32 ? 4 : 3)) return;
  d.need(72, 65);
  How h;
  h.to = to;
  h.from = from;
  h.sat = true;
  d.op.imm = packed(h);
  d.op.bits = static_cast<std::uint8_t>(bits_of(to));
  d.op.a = d.in(1, from);
  d.op.b = d.in(2, from);
  d.op.c = third == Type::B32 ? d.in(3, Type::B32) : d.constant(0);
  d.op.d = d.out(0, Type::B32);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const How how = unpacked(o.imm);
    const u64 *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c);
    u64* r = w.out(o.d);
    const u64 keep = (u64{1} << o.bits) - 1;
    lanes(m, [&](unsigned l) {
      r[l] = ((int_to_int(b[l], how) & keep) | (int_to_int(a[l], how) & keep) << o.bits | c[l] << (2 * o.bits)) & 0xffffffffu;
    });
  };
}

void pair(Decoder& d, How h) {
  const bool fp8 = h.to == Type::E4M3x2 || h.to == Type::E5M2x2;
  if (h.round == Round::None) return d.error("Rounding modifier required for instruction 'cvt'");
  if (h.from == Type::E4M3x2 || h.from == Type::E5M2x2) {
    if (h.to != Type::F16x2) return d.bad_type();
    d.need(89, 81, "conversion of 8-bit floats");
    d.op.execute = &execute_unpair;
    if (!d.count(2)) return;
    d.op.a = d.in(1, Type::B16);
    d.op.d = d.out(0, Type::B32);
  } else {
    if (h.from != Type::F32 && !(fp8 && h.from == Type::F16x2)) return d.bad_type();
    if (fp8 && !h.finite) return d.bad_type();
    d.need(fp8 ? 89 : 80, fp8 ? 81 : 70, "packed conversion");
    if (h.round != Round::Nearest && h.round != Round::Zero) return d.bad_type();
    d.op.execute = &execute_pair;
    if (!d.count(h.from == Type::F32 ? 3 : 2)) return;
    d.op.a = d.in(1, h.from == Type::F32 ? Type::F32 : Type::B32);
    d.op.b = h.from == Type::F32 ? d.in(2, Type::F32) : d.op.a;
    d.op.d = d.out(0, fp8 ? Type::B16 : Type::B32);
  }
  d.op.imm = packed(h);
}

void cvt(Decoder& d) {
  if (d.take("pack")) return pack(d);
  How h;
  h.round = d.take_round();
  if (h.round == Round::None && d.take("rna")) h.round = Round::Away;
  constexpr std::pair<std::string_view, Round> kIntegral[] = {
      {"rni", Round::Nearest}, {"rzi", Round::Zero}, {"rmi", Round::Down}, {"rpi", Round::Up}};
  for (const auto& [name, mode] : kIntegral)
    if (d.take(name)) h.integral = mode;
  if (d.take("rs")) return d.unknown("stochastic rounding");
  h.ftz = d.take("ftz");
  h.sat = d.take("sat");
  h.finite = d.take("satfinite");
  h.relu = d.take("relu");
  h.to = d.take_type();
  h.from = d.take_type();
  if (h.to == Type::None || h.from == Type::None) return d.bad_type();
  if (is_packed(h.to) || is_packed(h.from)) return pair(d, h);

  const bool from_float = is_float(h.from), to_a_float = is_float(h.to) || h.to == Type::TF32;
  if ((!from_float && !is_int(h.from)) || (!to_a_float && !is_int(h.to))) return d.bad_type();
  if (h.ftz && h.from != Type::F32 && h.to != Type::F32) return d.bad_type();
  if (h.round != Round::None && h.integral != Round::None) return d.bad_type();
  const bool same = h.from == h.to;
  const bool narrower = from_float && to_a_float && !same &&
                        (bits_of(h.to) < bits_of(h.from) || h.to == Type::TF32 || (bits_of(h.to) == 16 && bits_of(h.from) == 16));
  if (from_float && !to_a_float) {
    if (h.integral == Round::None) return d.error("Rounding modifier required for instruction 'cvt'");
  } else if (!from_float && to_a_float) {
    if (h.round == Round::None) return d.error("Rounding modifier required for instruction 'cvt'");
  } else if (narrower) {
    if (h.to == Type::F16 && h.from == Type::BF16 && h.round == Round::None) h.round = Round::Nearest;
    if (h.round == Round::None) return d.error("Rounding modifier required for instruction 'cvt'");
  } else if (h.round != Round::None || (h.integral != Round::None && !same) || (!from_float && h.integral != Round::None)) {
    return d.error("Illegal rounding modifier for instruction 'cvt'");
  }
  if (h.round == Round::Away && h.to != Type::TF32) return d.bad_type();
  if (h.relu && h.to != Type::F16 && h.to != Type::BF16 && h.to != Type::TF32) return d.bad_type();
  if (h.relu) d.need(80, 70, "cvt with .relu");
  if (h.to == Type::TF32) d.need(80, 70, "conversion to tf32");
  if (h.to == Type::BF16 && h.from == Type::F32) d.need(80, 70, "conversion to bf16");
  if ((h.to == Type::BF16 && h.from != Type::F32) || h.from == Type::BF16) {
    if (!(h.from == Type::BF16 && h.to == Type::F32)) d.need(90, 78, "conversion of bf16");
    else d.need(80, 71, "conversion of bf16");
  }
  if (!d.count(2)) return;
  const Type dst_register = h.to == Type::TF32 ? Type::B32 : h.to;
  const bool special = d.operand(1).kind == Operand::Kind::Special;  // the one other instruction than mov that takes them
  d.op.a = special ? d.scratch() : d.in(1, h.from, Decoder::Width::AtLeast);
  d.op.d = d.out(0, dst_register, Decoder::Width::AtLeast);
  const unsigned have = bits_of(d.register_type(d.operand(0)));
  d.op.bits = static_cast<std::uint8_t>(have == 0 ? bits_of(dst_register) : have);
  d.op.imm = packed(h);
  d.op.execute = !from_float && !to_a_float && !h.sat ? extend_from(h.from, h.to) : &execute;
  if (special) {
    d.op.code = static_cast<std::uint8_t>(*special_by_name(d.operand(1).name));
    d.op.compare = reinterpret_cast<void (*)()>(d.op.execute);
    d.op.execute = [](Warp& w, const Op& o, Mask m) {
      u64* a = w.out(o.a);
      lanes(m, [&](unsigned l) { a[l] = value_of(static_cast<Special>(o.code), w, l); });
      reinterpret_cast<Execute>(o.compare)(w, o, m);
    };
  }
}

}  // namespace

void add_convert(DecodeTable& table) { table["cvt"] = &cvt; }

}  // namespace kiln::simcuda::ptx
