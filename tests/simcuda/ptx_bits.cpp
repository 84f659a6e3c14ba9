// Logic, shifts, bit fields and permutations.
#include <bit>

#include "simcuda/ptx_arith.h"

namespace kiln::simcuda::ptx {
namespace {

using u32 = std::uint32_t;
using u64 = std::uint64_t;

bool plain_bits(Type t) { return t == Type::B16 || t == Type::B32 || t == Type::B64; }
u64 mask_of(unsigned width) { return width >= 64 ? ~u64{0} : (u64{1} << width) - 1; }

void operands(Decoder& d, Type t, std::size_t inputs) {
  if (!d.count(inputs + 1)) return;
  d.op.a = d.in(1, t);
  if (inputs > 1) d.op.b = d.in(2, t);
  if (inputs > 2) d.op.c = d.in(3, t);
  d.op.d = d.out(0, t);
}

template <char Op>
u64 logic_of(u64 a, u64 b) {
  return Op == '&' ? a & b : Op == '|' ? a | b : a ^ b;
}

template <char Kind>
void logic(Decoder& d) {
  const Type t = d.take_type();
  if (t == Type::Pred) {
    if (!d.count(3)) return;
    d.op.p = d.predicate_out(d.operand(0));
    d.op.q = d.predicate_in(d.operand(1));
    d.op.imm = d.predicate_in(d.operand(2));
    d.op.execute = [](Warp& w, const Op& o, Mask m) {
      w.set(o.p, static_cast<Mask>(logic_of<Kind>(w.test(o.q), w.test(static_cast<Predicate>(o.imm)))), m);
    };
    return;
  }
  if (!plain_bits(t)) return d.bad_type();
  d.op.execute = &map2<&logic_of<Kind>>;
  operands(d, t, 2);
}

void logical_not(Decoder& d) {
  const Type t = d.take_type();
  if (t == Type::Pred) {
    if (!d.count(2)) return;
    d.op.p = d.predicate_out(d.operand(0));
    d.op.q = d.predicate_in(d.operand(1));
    d.op.execute = [](Warp& w, const Op& o, Mask m) { w.set(o.p, ~w.test(o.q), m); };
    return;
  }
  if (!plain_bits(t)) return d.bad_type();
  d.op.execute = t == Type::B16   ? &map1<[](u64 a) -> u64 { return ~a & 0xffff; }>
                 : t == Type::B32 ? &map1<[](u64 a) -> u64 { return ~a & 0xffffffffu; }>
                                  : &map1<[](u64 a) -> u64 { return ~a; }>;
  operands(d, t, 1);
}

void cnot(Decoder& d) {
  const Type t = d.take_type();
  if (!plain_bits(t)) return d.bad_type();
  d.op.execute = &map1<[](u64 a) -> u64 { return a == 0 ? 1 : 0; }>;
  operands(d, t, 1);
}

void shl(Decoder& d) {
  const Type t = d.take_type();
  if (!plain_bits(t)) return d.bad_type();
  d.op.execute = for_integer(t, []<class T>() -> Execute {
    return &map2<[](u64 a, u64 b) -> u64 { return static_cast<u32>(b) >= 8 * sizeof(T) ? 0 : static_cast<T>(a << (b & 63)); }>;
  });
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, Type::U32);
  d.op.d = d.out(0, t);
}

void shr(Decoder& d) {
  const Type t = d.take_type();
  if (!plain_bits(t) && (!is_int(t) || bits_of(t) < 16)) return d.bad_type();
  d.op.execute = for_integer(t, []<class T>() -> Execute {
    return &map2<[](u64 a, u64 b) -> u64 {
      const u32 n = static_cast<u32>(b);
      constexpr u32 width = 8 * sizeof(T);
      if constexpr (std::is_signed_v<T>) return bits(static_cast<T>(static_cast<T>(a) >> (n >= width ? width - 1 : n)));
      else return (n >= width ? 0 : static_cast<T>(a) >> n);
    }>;
  });
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, Type::U32);
  d.op.d = d.out(0, t);
}

void funnel(Decoder& d) {
  const std::string_view side = d.take_any({"l", "r"}), mode = d.take_any({"wrap", "clamp"});
  const Type t = d.take_type();
  if (side.empty() || mode.empty() || t != Type::B32) return d.bad_type();
  static constexpr auto left = [](u64 a, u64 b, u32 n) -> u64 { return static_cast<u32>(((b << 32 | a) << n) >> 32); };
  static constexpr auto right = [](u64 a, u64 b, u32 n) -> u64 { return static_cast<u32>((b << 32 | a) >> n); };
  const bool wrap = mode == "wrap";
  if (side == "l") {
    d.op.execute = wrap ? &map3<[](u64 a, u64 b, u64 c) -> u64 { return left(a, b, c & 31); }>
                        : &map3<[](u64 a, u64 b, u64 c) -> u64 { return left(a, b, static_cast<u32>(c) > 32 ? 32 : static_cast<u32>(c)); }>;
  } else {
    d.op.execute = wrap
                       ? &map3<[](u64 a, u64 b, u64 c) -> u64 { return right(a, b, c & 31); }>
                       : &map3<[](u64 a, u64 b, u64 c) -> u64 { return right(a, b, static_cast<u32>(c) > 32 ? 32 : static_cast<u32>(c)); }>;
  }
  if (!d.count(4)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.in(3, Type::U32);
  d.op.d = d.out(0, t);
}

// popc, clz: a 32-bit result of a 32- or 64-bit operand.
template <char Kind>
void counting(Decoder& d) {
  const Type t = d.take_type();
  if (t != Type::B32 && t != Type::B64) return d.bad_type();
  if (Kind == 'p') {
    d.op.execute = &map1<[](u64 a) -> u64 { return static_cast<u64>(std::popcount(a)); }>;
  } else {
    d.op.execute = t == Type::B32 ? &map1<[](u64 a) -> u64 { return static_cast<u64>(std::countl_zero(static_cast<u32>(a))); }>
                                  : &map1<[](u64 a) -> u64 { return static_cast<u64>(std::countl_zero(a)); }>;
  }
  if (!d.count(2)) return;
  d.op.a = d.in(1, t);
  d.op.d = d.out(0, Type::U32);
}

template <class T, bool Amount>
u64 find_bit(u64 a) {
  using U = std::make_unsigned_t<T>;
  U v = static_cast<U>(a);
  if (std::is_signed_v<T> && static_cast<T>(v) < 0) v = static_cast<U>(~v);
  if (v == 0) return 0xffffffffu;
  const int n = std::countl_zero(v);
  return static_cast<u64>(Amount ? n : static_cast<int>(8 * sizeof(T)) - 1 - n);
}

void bfind(Decoder& d) {
  const bool amount = d.take("shiftamt");
  const Type t = d.take_type();
  if (!is_int(t) || bits_of(t) < 32) return d.bad_type();
  d.op.execute = for_integer(t, [amount]<class T>() -> Execute { return amount ? &map1<&find_bit<T, true>> : &map1<&find_bit<T, false>>; });
  if (!d.count(2)) return;
  d.op.a = d.in(1, t);
  d.op.d = d.out(0, Type::U32);
}

u64 reversed(u64 v) {
  v = (v >> 1 & 0x5555555555555555u) | (v & 0x5555555555555555u) << 1;
  v = (v >> 2 & 0x3333333333333333u) | (v & 0x3333333333333333u) << 2;
  v = (v >> 4 & 0x0f0f0f0f0f0f0f0fu) | (v & 0x0f0f0f0f0f0f0f0fu) << 4;
  return __builtin_bswap64(v);
}

void brev(Decoder& d) {
  const Type t = d.take_type();
  if (t != Type::B32 && t != Type::B64) return d.bad_type();
  d.op.execute = t == Type::B32 ? &map1<[](u64 a) -> u64 { return (reversed(a) >> 32); }> : &map1<[](u64 a) -> u64 { return reversed(a); }>;
  operands(d, t, 1);
}

template <class T>
u64 extract(u64 a, u64 b, u64 c) {
  constexpr unsigned width = 8 * sizeof(T);
  const unsigned position = b & 0xff, length = c & 0xff;
  const u64 value = a & mask_of(width);
  u64 fill = 0;
  if (std::is_signed_v<T> && length != 0) {
    const unsigned at = position + length - 1 < width - 1 ? position + length - 1 : width - 1;
    fill = (value >> at & 1) != 0 ? mask_of(width) : 0;
  }
  const u64 got = position >= width ? 0 : value >> position;
  const unsigned have = position >= width ? 0 : (length < width - position ? length : width - position);
  return ((got & mask_of(have)) | (fill & ~mask_of(have))) & mask_of(width);
}

void bfe(Decoder& d) {
  const Type t = d.take_type();
  if (!is_int(t) || bits_of(t) < 32) return d.bad_type();
  d.op.execute = for_integer(t, []<class T>() -> Execute { return &map3<&extract<T>>; });
  if (!d.count(4)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, Type::U32);
  d.op.c = d.in(3, Type::U32);
  d.op.d = d.out(0, t);
}

void bfi(Decoder& d) {
  const Type t = d.take_type();
  if (t != Type::B32 && t != Type::B64) return d.bad_type();
  if (!d.count(5)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.in(3, Type::U32);
  d.op.v[0] = d.in(4, Type::U32);
  d.op.d = d.out(0, t);
  d.op.bits = static_cast<std::uint8_t>(bits_of(t));
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64 *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c), *e = w.in(o.v[0]);
    u64* r = w.out(o.d);
    lanes(m, [&](unsigned l) {
      const unsigned position = c[l] & 0xff, length = e[l] & 0xff;
      const u64 field = position >= o.bits ? 0 : (mask_of(length) << position) & mask_of(o.bits);
      r[l] = (b[l] & ~field) | (position >= o.bits ? 0 : a[l] << position & field);
    });
  };
}

template <char Mode>
u64 permute(u64 a, u64 b, u64 c) {
  const u64 all = b << 32 | (a & 0xffffffffu);
  u64 r = 0;
  for (unsigned k = 0; k < 4; ++k) {
    const unsigned s = static_cast<unsigned>(c) & 3;
    unsigned from = 0;
    bool replicate = false;
    if constexpr (Mode == 'n') {
      from = c >> (4 * k) & 7;
      replicate = (c >> (4 * k) & 8) != 0;
    } else if constexpr (Mode == 'f') {
      from = s + k;
    } else if constexpr (Mode == 'b') {
      from = (s - k) & 7;
    } else if constexpr (Mode == '8') {
      from = s;
    } else if constexpr (Mode == 'l') {
      from = k > s ? k : s;
    } else if constexpr (Mode == 'r') {
      from = k < s ? k : s;
    } else {
      from = (s & 1) * 2 + (k & 1);
    }
    u64 byte = all >> (8 * from) & 0xff;
    if (replicate) byte = (byte & 0x80) != 0 ? 0xff : 0;
    r |= byte << (8 * k);
  }
  return r;
}

void prmt(Decoder& d) {
  const Type t = d.take_type();
  const std::string_view mode = d.take_any({"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"});
  if (t != Type::B32) return d.bad_type();
  d.op.execute = mode.empty()    ? &map3<&permute<'n'>>
                 : mode == "f4e" ? &map3<&permute<'f'>>
                 : mode == "b4e" ? &map3<&permute<'b'>>
                 : mode == "rc8" ? &map3<&permute<'8'>>
                 : mode == "ecl" ? &map3<&permute<'l'>>
                 : mode == "ecr" ? &map3<&permute<'r'>>
                                 : &map3<&permute<'6'>>;
  operands(d, t, 3);
}

void lop3(Decoder& d) {
  const std::string_view combine = d.take_any({"and", "or"});
  const Type t = d.take_type();
  if (t != Type::B32) return d.bad_type();
  if (!d.count(combine.empty() ? 5 : 6)) return;
  const auto lut = d.integer(d.operand(4));
  if (!lut) return d.mismatch();
  d.op.imm = *lut & 0xff;
  const Operand& out = d.operand(0);
  if (!combine.empty()) {
    if (out.kind != Operand::Kind::Pair) return d.mismatch();
    d.op.d = d.out(out.parts[0], t);
    d.op.p = d.predicate_out(out.parts[1]);
    d.op.q = d.predicate_in(d.operand(5));
    d.op.code = static_cast<std::uint8_t>(combine[0]);
  } else {
    d.op.d = d.out(out, t);
  }
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, t);
  d.op.c = d.in(3, t);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64 *a = w.in(o.a), *b = w.in(o.b), *c = w.in(o.c);
    u64* r = w.out(o.d);
    Mask any = 0;
    lanes(m, [&](unsigned l) {
      u64 v = 0;
      for (unsigned k = 0; k < 8; ++k)
        if ((o.imm >> k & 1) != 0) v |= ((k & 4) != 0 ? a[l] : ~a[l]) & ((k & 2) != 0 ? b[l] : ~b[l]) & ((k & 1) != 0 ? c[l] : ~c[l]);
      r[l] = v & 0xffffffffu;
      any |= static_cast<Mask>(r[l] != 0) << l;
    });
    if (o.code != 0) w.set(o.p, o.code == 'a' ? any & w.test(o.q) : any | w.test(o.q), m);
  };
}

u64 nth_set(u64 mask, u64 base, u64 offset) {
  const auto n = static_cast<std::int32_t>(offset);
  if (n == 0) return base < 32 && (mask >> base & 1) != 0 ? base : 0xffffffffu;
  std::int32_t left = n < 0 ? -n : n;
  const int step = n > 0 ? 1 : -1;
  for (auto at = static_cast<std::int64_t>(base); at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) != 0 && --left == 0) return static_cast<u64>(at);
  return 0xffffffffu;
}

void fns(Decoder& d) {
  if (d.take_type() != Type::B32) return d.bad_type();
  if (!d.count(4)) return;
  d.op.a = d.in(1, Type::B32);
  d.op.b = d.in(2, Type::B32);
  d.op.c = d.in(3, Type::S32);
  d.op.d = d.out(0, Type::B32);
  d.op.execute = &map3<&nth_set>;
}

void bmsk(Decoder& d) {
  const std::string_view mode = d.take_any({"clamp", "wrap"});
  if (mode.empty() || d.take_type() != Type::B32) return d.bad_type();
  d.need(70, 76);
  operands(d, Type::B32, 2);
  d.op.execute =
      mode == "clamp"
          ? &map2<[](u64 a, u64 b) -> u64 { return a >= 32 ? 0 : (mask_of(b > 32 ? 32 : static_cast<unsigned>(b)) << a) & 0xffffffffu; }>
          : &map2<[](u64 a, u64 b) -> u64 { return (mask_of(b & 31) << (a & 31)) & 0xffffffffu; }>;
}

void szext(Decoder& d) {
  const std::string_view mode = d.take_any({"clamp", "wrap"});
  const Type t = d.take_type();
  if (mode.empty() || (t != Type::U32 && t != Type::S32)) return d.bad_type();
  d.need(70, 76);
  d.op.sign = t == Type::S32;
  d.op.code = mode == "wrap";
  if (!d.count(3)) return;
  d.op.a = d.in(1, t);
  d.op.b = d.in(2, Type::U32);
  d.op.d = d.out(0, t);
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64 *a = w.in(o.a), *b = w.in(o.b);
    u64* r = w.out(o.d);
    lanes(m, [&](unsigned l) {
      const unsigned n = o.code != 0 ? b[l] & 31 : b[l] > 32 ? 32 : static_cast<unsigned>(b[l]);
      const u64 kept = a[l] & mask_of(n);
      r[l] = (o.sign && n > 0 && (kept >> (n - 1) & 1) != 0 ? kept | ~mask_of(n) : kept) & 0xffffffffu;
    });
  };
}

}  // namespace

void add_bits(DecodeTable& table) {
  table["and"] = &logic<'&'>;
  table["or"] = &logic<'|'>;
  table["xor"] = &logic<'^'>;
  table["not"] = &logical_not;
  table["cnot"] = &cnot;
  table["shl"] = &shl;
  table["shr"] = &shr;
  table["shf"] = &funnel;
  table["popc"] = &counting<'p'>;
  table["clz"] = &counting<'z'>;
  table["bfind"] = &bfind;
  table["brev"] = &brev;
  table["bfe"] = &bfe;
  table["bfi"] = &bfi;
  table["prmt"] = &prmt;
  table["lop3"] = &lop3;
  table["fns"] = &fns;
  table["bmsk"] = &bmsk;
  table["szext"] = &szext;
}

}  // namespace kiln::simcuda::ptx
