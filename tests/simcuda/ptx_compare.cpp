// setp, set, selp, slct.
#include <array>
#include <bit>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_float.h"
#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

enum class Cmp : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Equ, Neu, Ltu, Leu, Gtu, Geu, Num, Nan };
constexpr std::array<std::string_view, 14> kNames{"eq",  "ne",  "lt",  "le",  "gt",  "ge",  "equ",
                                                  "neu", "ltu", "leu", "gtu", "geu", "num", "nan"};

template <Cmp C, class T>
bool holds(T a, T b) {
  if constexpr (C == Cmp::Eq) return a == b;
  else if constexpr (C == Cmp::Ne) return (a < b) || (a > b);  // ordered: false with a NaN
  else if constexpr (C == Cmp::Lt) return a < b;
  else if constexpr (C == Cmp::Le) return a <= b;
  else if constexpr (C == Cmp::Gt) return a > b;
  else if constexpr (C == Cmp::Ge) return a >= b;
  else if constexpr (C == Cmp::Equ) return !(a < b) && !(a > b);
  else if constexpr (C == Cmp::Neu) return a != b;
  else if constexpr (C == Cmp::Ltu) return !(a >= b);
  else if constexpr (C == Cmp::Leu) return !(a > b);
  else if constexpr (C == Cmp::Gtu) return !(a <= b);
  else if constexpr (C == Cmp::Geu) return !(a < b);
  else if constexpr (C == Cmp::Num) return a == a && b == b;
  else return a != a || b != b;
}

// The lanes for which a comparison holds; the second mask is for the upper halves of packed types.
struct Truth {
  Mask low = 0, high = 0;
};
using Compare = Truth (*)(const u64* a, const u64* b, Mask m);

template <class T, Cmp C>
Truth compare_integer(const u64* a, const u64* b, Mask m) {
  Mask r = 0;
  lanes(m, [&](unsigned l) { r |= static_cast<Mask>(holds<C>(static_cast<T>(a[l]), static_cast<T>(b[l]))) << l; });
  return {r, 0};
}
template <auto Value, Cmp C>
Truth compare_float(const u64* a, const u64* b, Mask m) {
  Mask r = 0;
  lanes(m, [&](unsigned l) { r |= static_cast<Mask>(holds<C>(Value(a[l]), Value(b[l]))) << l; });
  return {r, 0};
}
template <auto Value, Cmp C>
Truth compare_pair(const u64* a, const u64* b, Mask m) {
  Truth r;
  lanes(m, [&](unsigned l) {
    r.low |= static_cast<Mask>(holds<C>(Value(a[l] & 0xffff), Value(b[l] & 0xffff))) << l;
    r.high |= static_cast<Mask>(holds<C>(Value(a[l] >> 16 & 0xffff), Value(b[l] >> 16 & 0xffff))) << l;
  });
  return r;
}

constexpr auto kValue32 = [](u64 v) { return f32(v); };
constexpr auto kValue32Ftz = [](u64 v) { return f32(flush32(v)); };
constexpr auto kValue64 = [](u64 v) { return f64(v); };
constexpr auto kValueF16 = [](u64 v) { return from_f16(v); };
constexpr auto kValueF16Ftz = [](u64 v) { return from_f16((v & 0x7c00) == 0 ? v & 0x8000 : v); };
constexpr auto kValueBF16 = [](u64 v) { return from_bf16(v); };

template <class T>
Compare integer_table(Cmp c) {
  constexpr std::array<Compare, 6> table{&compare_integer<T, Cmp::Eq>, &compare_integer<T, Cmp::Ne>, &compare_integer<T, Cmp::Lt>,
                                         &compare_integer<T, Cmp::Le>, &compare_integer<T, Cmp::Gt>, &compare_integer<T, Cmp::Ge>};
  return c <= Cmp::Ge ? table[static_cast<std::size_t>(c)] : nullptr;
}
template <auto V>
Compare float_table(Cmp c) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr std::array<Compare, 14> table{&compare_float<V, static_cast<Cmp>(I)>...};
    return table[static_cast<std::size_t>(c)];
  }(std::make_index_sequence<14>());
}
template <auto V>
Compare pair_table(Cmp c) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    constexpr std::array<Compare, 14> table{&compare_pair<V, static_cast<Cmp>(I)>...};
    return table[static_cast<std::size_t>(c)];
  }(std::make_index_sequence<14>());
}

Compare comparison(Type t, Cmp c, bool ftz) {
  switch (t) {
    case Type::U16:
    case Type::B16: return integer_table<std::uint16_t>(c);
    case Type::S16: return integer_table<std::int16_t>(c);
    case Type::U32:
    case Type::B32: return integer_table<std::uint32_t>(c);
    case Type::S32: return integer_table<std::int32_t>(c);
    case Type::U64:
    case Type::B64: return integer_table<u64>(c);
    case Type::S64: return integer_table<std::int64_t>(c);
    case Type::F32: return ftz ? float_table<kValue32Ftz>(c) : float_table<kValue32>(c);
    case Type::F64: return float_table<kValue64>(c);
    case Type::F16: return ftz ? float_table<kValueF16Ftz>(c) : float_table<kValueF16>(c);
    case Type::BF16: return float_table<kValueBF16>(c);
    case Type::F16x2: return ftz ? pair_table<kValueF16Ftz>(c) : pair_table<kValueF16>(c);
    case Type::BF16x2: return pair_table<kValueBF16>(c);
    default: return nullptr;
  }
}

// The comparisons that setp and set share: the operator, how it combines with a predicate, .ftz. The names lo, ls, hi, hs are unsigned.
struct Read {
  Cmp cmp = Cmp::Eq;
  char combine = 0;  // a(nd), o(r), x(or)
  bool ftz = false, ok = false, unsigned_name = false;
};
Read read(Decoder& d) {
  Read r;
  for (std::size_t k = 0; k < kNames.size() && !r.ok; ++k)
    if (d.take(kNames[k])) {
      r.cmp = static_cast<Cmp>(k);
      r.ok = true;
    }
  constexpr std::pair<std::string_view, Cmp> kUnsigned[] = {{"lo", Cmp::Lt}, {"ls", Cmp::Le}, {"hi", Cmp::Gt}, {"hs", Cmp::Ge}};
  for (const auto& [name, cmp] : kUnsigned)
    if (!r.ok && d.take(name)) {
      r.cmp = cmp;
      r.ok = r.unsigned_name = true;
    }
  const std::string_view combine = d.take_any({"and", "or", "xor"});
  if (!combine.empty()) r.combine = combine[0];
  r.ftz = d.take("ftz");
  return r;
}

bool check(Decoder& d, const Read& r, Type t) {
  const bool untyped_order = is_untyped(t) && r.cmp > Cmp::Ne;
  const bool integer_unordered = (is_int(t) || is_untyped(t)) && r.cmp > Cmp::Ge;
  const bool halves = t == Type::F16 || t == Type::F16x2;
  if (!r.ok || untyped_order || integer_unordered || (r.unsigned_name && !is_unsigned(t))) {
    d.error("Mismatch between instruction type and comparison qualifier");
    return false;
  }
  if ((r.ftz && t != Type::F32 && !halves) || bits_of(t) < 16 || t == Type::Pred) {
    d.bad_type();
    return false;
  }
  if (t == Type::BF16 || t == Type::BF16x2) d.need(90, 78, "comparison of bf16");
  return true;
}

Truth combined(const Warp& w, const Op& o, Truth t) {
  const Mask c = w.test(static_cast<Predicate>(o.imm));
  switch (o.code) {
    case 'a': return {t.low & c, t.high & c};
    case 'o': return {t.low | c, t.high | c};
    case 'x': return {t.low ^ c, t.high ^ c};
    default: return t;
  }
}

void setp(Decoder& d) {
  const Read r = read(d);
  const Type t = d.take_type();
  if (!check(d, r, t)) return;
  const bool pair = t == Type::F16x2 || t == Type::BF16x2;
  const Compare f = comparison(t, r.cmp, r.ftz);
  if (f == nullptr) return d.bad_type();
  if (!d.count(r.combine != 0 ? 4 : 3)) return;
  const Operand& out = d.operand(0);
  if (out.kind == Operand::Kind::Pair) {
    d.op.p = d.predicate_out(out.parts[0]);
    d.op.q = d.predicate_out(out.parts[1]);
  } else {
    d.op.p = d.predicate_out(out);
  }
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.code = static_cast<std::uint8_t>(r.combine);
  d.op.imm = r.combine != 0 ? d.predicate_in(d.operand(3)) : kTrue;
  d.op.compare = reinterpret_cast<void (*)()>(f);
  d.op.sign = pair;
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const Truth raw = reinterpret_cast<Compare>(o.compare)(w.in(o.a), w.in(o.b), m);
    const Truth r1 = combined(w, o, raw);
    if (o.q >= 0) {
      // Without packed types the second predicate is the combination of the negated comparison.
      const Mask second = o.sign ? r1.high : combined(w, o, {~raw.low, 0}).low;
      w.set(o.p, r1.low, m);
      w.set(o.q, second, m);
    } else {
      w.set(o.p, r1.low, m);
    }
  };
}

void set(Decoder& d) {
  const Read r = read(d);
  const Type to = d.take_type(), t = d.take_type();
  if (!check(d, r, t)) return;
  const Compare f = comparison(t, r.cmp, r.ftz);
  if (f == nullptr) return d.bad_type();
  const bool pair = t == Type::F16x2 || t == Type::BF16x2;
  u64 one = 0;
  switch (to) {
    case Type::U32:
    case Type::S32: one = pair ? 0xffff : 0xffffffffu; break;
    case Type::U16:
    case Type::S16: one = 0xffff; break;
    case Type::F32: one = 0x3f800000; break;
    case Type::F16:
    case Type::F16x2: one = 0x3c00; break;
    case Type::BF16:
    case Type::BF16x2: one = 0x3f80; break;
    default: return d.bad_type();
  }
  if (!d.count(r.combine != 0 ? 4 : 3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.constant(one);
  d.op.d = d.out(0, to);
  d.op.code = static_cast<std::uint8_t>(r.combine);
  d.op.imm = r.combine != 0 ? d.predicate_in(d.operand(3)) : kTrue;
  d.op.compare = reinterpret_cast<void (*)()>(f);
  d.op.sign = pair;
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const Truth r1 = combined(w, o, reinterpret_cast<Compare>(o.compare)(w.in(o.a), w.in(o.b), m));
    const u64 v = *w.in(o.c);
    u64* out = w.out(o.d);
    lanes(m, [&](unsigned l) { out[l] = ((r1.low >> l & 1) != 0 ? v : 0) | (o.sign && (r1.high >> l & 1) != 0 ? v << 16 : 0); });
  };
}

void selp(Decoder& d) {
  const Type t = d.take_type();
  if (bits_of(t) < 16 || t == Type::Pred || is_packed(t) || t == Type::B128 || t == Type::TF32 || t == Type::F16 || t == Type::BF16)
    return d.bad_type();
  if (!d.count(4)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.q = d.predicate_in(d.operand(3));
  d.op.d = d.out(0, t);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64 *a = w.in(o.a), *b = w.in(o.b);
    u64* r = w.out(o.d);
    const Mask p = w.test(o.q);
    lanes(m, [&](unsigned l) { r[l] = (p >> l & 1) != 0 ? a[l] : b[l]; });
  };
}

void slct(Decoder& d) {
  const bool ftz = d.take("ftz");
  const Type t = d.take_type(), by = d.take_type();
  if ((by != Type::S32 && by != Type::F32) || (ftz && by != Type::F32) || bits_of(t) < 16) return d.bad_type();
  d.op.execute = by == Type::S32 ? &map3<[](u64 a, u64 b, u64 c) -> u64 { return static_cast<std::int32_t>(c) >= 0 ? a : b; }>
                 : ftz           ? &map3<[](u64 a, u64 b, u64 c) -> u64 { return f32(flush32(c)) >= 0 ? a : b; }>
                                 : &map3<[](u64 a, u64 b, u64 c) -> u64 { return f32(c) >= 0 ? a : b; }>;
  if (!d.count(4)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.in(3, by);
  d.op.d = d.out(0, t);
}

}  // namespace

void add_compare(DecodeTable& table) {
  table["setp"] = &setp;
  table["set"] = &set;
  table["selp"] = &selp;
  table["slct"] = &slct;
}

}  // namespace kiln::simcuda::ptx
