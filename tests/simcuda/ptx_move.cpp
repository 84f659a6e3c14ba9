// mov in all its forms, cvta, isspacep, addresses in clusters, and the pseudo-moves of policies.
#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_block.h"
#include "simcuda/ptx_special.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

void copy(Warp& w, const Op& o, Mask m) {
  const u64* a = w.in(o.a);
  u64* d = w.out(o.d);
  lanes(m, [&](unsigned l) { d[l] = a[l]; });
}
void copy_wide(Warp& w, const Op& o, Mask m) {
  const u64 *a = w.in(o.a), *a2 = w.in(next(o.a));
  u64 *d = w.out(o.d), *d2 = w.out(next(o.d));
  lanes(m, [&](unsigned l) {
    d[l] = a[l];
    d2[l] = a2[l];
  });
}

void special(Warp& w, const Op& o, Mask m) {
  u64* d = w.out(o.d);
  const u64 keep = o.bits >= 64 ? ~u64{0} : (u64{1} << o.bits) - 1;
  lanes(m, [&](unsigned l) { d[l] = value_of(static_cast<Special>(o.code), w, l) & keep; });
}

// {a, b} into one register, lowest first.
void pack(Warp& w, const Op& o, Mask m) {
  u64* d = w.out(o.d);
  u64* d2 = o.sign ? w.out(next(o.d)) : nullptr;
  for (Mask rest = m; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    unsigned __int128 all = 0;
    for (unsigned k = 0; k < o.count; ++k) {
      const u64 part = w.in(o.v[k])[l] & (o.bits >= 64 ? ~u64{0} : (u64{1} << o.bits) - 1);
      all |= static_cast<unsigned __int128>(part) << (k * o.bits);
    }
    d[l] = static_cast<u64>(all);
    if (d2 != nullptr) d2[l] = static_cast<u64>(all >> 64);
  }
}
void unpack(Warp& w, const Op& o, Mask m) {
  const u64* a = w.in(o.a);
  const u64* a2 = o.sign ? w.in(next(o.a)) : nullptr;
  for (Mask rest = m; rest != 0; rest &= rest - 1) {
    const auto l = static_cast<unsigned>(std::countr_zero(rest));
    const unsigned __int128 all = static_cast<unsigned __int128>(a2 != nullptr ? a2[l] : 0) << 64 | a[l];
    for (unsigned k = 0; k < o.count; ++k)
      w.out(o.v[k])[l] = static_cast<u64>(all >> (k * o.bits)) & (o.bits >= 64 ? ~u64{0} : (u64{1} << o.bits) - 1);
  }
}

void move_vector(Decoder& d, Type t, bool packing) {
  const Operand& v = d.operand(packing ? 1 : 0);
  const std::size_t n = v.parts.size();
  if (n != 2 && n != 4) return d.error("Illegal vector size: " + std::to_string(n));
  if (!is_untyped(t)) return d.mismatch();
  const auto each = bits_of(t) / static_cast<unsigned>(n);
  const Type part = each == 8 ? Type::B8 : each == 16 ? Type::B16 : each == 32 ? Type::B32 : each == 64 ? Type::B64 : Type::None;
  if (part == Type::None) return d.error("Incompatible elements of vector expression");
  for (const Operand& o : v.parts) {
    if (d.is_register(o) && bits_of(d.register_type(o)) != each) return d.error("Incompatible elements of vector expression");
  }
  d.op.count = static_cast<std::uint8_t>(n);
  d.op.bits = static_cast<std::uint8_t>(each);
  d.op.sign = t == Type::B128;
  for (std::size_t k = 0; k < n; ++k) d.op.v[k] = packing ? d.in(v.parts[k], part) : d.out(v.parts[k], part);
  if (packing) {
    d.op.d = d.out(0, t);
    d.op.execute = &pack;
  } else {
    d.op.a = d.in(1, t);
    d.op.execute = &unpack;
  }
}

// The address of a variable or function as a value.
void move_address(Decoder& d, const Operand& o, Type t, bool generic) {
  if ((t != Type::U64 && t != Type::B64 && t != Type::S64 && bits_of(t) != 32) || is_float(t)) return d.mismatch();
  if (o.kind == Operand::Kind::Function) {
    const auto it = d.context().functions.find(o.function);
    if (it == d.context().functions.end() || it->second == nullptr) return d.mismatch();
    d.op.a = d.constant(it->second->address);
    d.op.execute = &copy;
    return;
  }
  const Variable& v = *o.variable;
  const bool entry_param = v.space == Space::Param && d.decl().entry;
  if (bits_of(t) == 32 && v.space != Space::Shared && v.space != Space::Local && v.space != Space::Param) return d.mismatch();
  if (v.space == Space::Local || (v.space == Space::Param && !entry_param)) {
    d.op.imm = static_cast<std::int64_t>(d.frame_offset(v)) + o.value + static_cast<std::int64_t>(generic ? kLocalWindow : 0);
    d.op.execute = [](Warp& w, const Op& op, Mask m) {
      u64* r = w.out(op.d);
      const u64 at = w.frame->local + static_cast<u64>(op.imm);
      lanes(m, [&](unsigned l) { r[l] = at; });
    };
    return;
  }
  u64 address = entry_param ? v.offset + (generic ? kParamWindow : 0) : d.address_of(v, generic);
  address += static_cast<u64>(o.value);
  d.op.a = d.constant(address);
  d.op.execute = &copy;
}

void mov(Decoder& d) {
  const Type t = d.take_type();
  if (t == Type::None || bits_of(t) == 8 || is_packed(t) || t == Type::TF32 || t == Type::F16 || t == Type::BF16) return d.bad_type();
  if (!d.count(2)) return;
  const Operand &to = d.operand(0), &from = d.operand(1);
  if (from.kind == Operand::Kind::Vector) return move_vector(d, t, true);
  if (to.kind == Operand::Kind::Vector) return move_vector(d, t, false);
  if (t == Type::Pred) {
    d.op.p = d.predicate_out(to);
    if (from.kind == Operand::Kind::Special && type_of(*special_by_name(from.name)) == Type::Pred) {
      d.op.code = static_cast<std::uint8_t>(*special_by_name(from.name));
      d.op.execute = [](Warp& w, const Op& o, Mask m) { w.set(o.p, value_of(static_cast<Special>(o.code), w, 0) != 0 ? ~Mask{0} : 0, m); };
      return;
    }
    d.op.q = d.predicate_in(from);
    d.op.execute = [](Warp& w, const Op& o, Mask m) { w.set(o.p, w.test(o.q), m); };
    return;
  }
  d.op.d = d.out(to, t);
  switch (from.kind) {
    case Operand::Kind::Special: {
      const Special s = *special_by_name(from.name);
      const unsigned have = bits_of(type_of(s));
      if (from.name.find("cluster") != std::string_view::npos) d.need(90, 78, from.name);
      if (is_float(t) || (have < bits_of(t) || (have > bits_of(t) && s != Special::GridId))) {
        if (is_float(t) || have != 32 || bits_of(t) != 16) return d.mismatch();
      }
      d.op.bits = static_cast<std::uint8_t>(bits_of(t));
      d.op.code = static_cast<std::uint8_t>(s);
      d.op.execute = &special;
      return;
    }
    case Operand::Kind::Variable:
    case Operand::Kind::Function: return move_address(d, from, t, false);
    default: d.op.a = d.in(from, t); d.op.execute = t == Type::B128 ? &copy_wide : &copy;
  }
}

std::optional<Space> take_space(Decoder& d) {
  constexpr std::pair<std::string_view, Space> kSpaces[] = {{"global", Space::Global},
                                                            {"shared", Space::Shared},
                                                            {"local", Space::Local},
                                                            {"const", Space::Const},
                                                            {"param", Space::Param},
                                                            {"shared::cta", Space::Shared},
                                                            {"shared::cluster", Space::Shared},
                                                            {"param::entry", Space::Param}};
  for (const auto& [name, space] : kSpaces)
    if (d.take(name)) return space;
  return std::nullopt;
}

u64 window_of(Space s) {
  return s == Space::Shared ? kSharedWindow : s == Space::Local ? kLocalWindow : s == Space::Param ? kParamWindow : 0;
}

void cvta(Decoder& d) {
  const bool to = d.take("to");
  const auto space = take_space(d);
  const Type t = d.take_type();
  if (!space || t != Type::U64) return d.bad_type();
  if (!d.count(2)) return;
  d.op.d = d.out(0, t);
  const Operand& from = d.operand(1);
  if (from.kind == Operand::Kind::Variable) {
    if (from.variable->space != *space) return d.mismatch();
    return move_address(d, from, t, !to);
  }
  d.op.a = d.in(from, t);
  d.op.imm = static_cast<std::int64_t>(window_of(*space));
  if (*space == Space::Global || *space == Space::Const) {
    d.op.execute = &copy;
  } else if (to) {
    d.op.execute = [](Warp& w, const Op& o, Mask m) {
      const u64* a = w.in(o.a);
      u64* r = w.out(o.d);
      lanes(m, [&](unsigned l) { r[l] = a[l] - static_cast<u64>(o.imm); });
    };
  } else {
    d.op.execute = [](Warp& w, const Op& o, Mask m) {
      const u64* a = w.in(o.a);
      u64* r = w.out(o.d);
      lanes(m, [&](unsigned l) { r[l] = a[l] + static_cast<u64>(o.imm); });
    };
  }
}

void isspacep(Decoder& d) {
  const auto space = take_space(d);
  if (!space || !d.count(2)) return space ? void() : d.bad_type();
  d.op.p = d.predicate_out(d.operand(0));
  d.op.a = d.in(1, bits_of(d.register_type(d.operand(1))) == 32 ? Type::U32 : Type::U64);
  d.op.imm = static_cast<std::int64_t>(window_of(*space) >> 48);
  d.op.sign = *space == Space::Const;  // constants lie in device memory here, and count as global
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64* a = w.in(o.a);
    Mask r = 0;
    lanes(m, [&](unsigned l) { r |= static_cast<Mask>(!o.sign && (a[l] >> 48) == static_cast<u64>(o.imm)) << l; });
    w.set(o.p, r, m);
  };
}

// In a cluster of one the address of another block's shared memory is one's own.
void mapa(Decoder& d) {
  d.need(90, 78);
  d.function().clusters = true;
  take_space(d);
  const Type t = d.take_type();
  if (t != Type::U32 && t != Type::U64) return d.bad_type();
  if (!d.count(3)) return;
  d.op.d = d.out(0, t);
  if (d.operand(1).kind == Operand::Kind::Variable) {
    move_address(d, d.operand(1), t, false);
  } else {
    d.op.a = d.in(1, t);
    d.op.execute = &copy;
  }
  d.in(2, Type::U32);
}

void getctarank(Decoder& d) {
  d.need(90, 78);
  d.function().clusters = true;
  take_space(d);
  const Type t = d.take_type();
  if (t != Type::U32 && t != Type::U64) return d.bad_type();
  if (!d.count(2)) return;
  d.op.d = d.out(0, Type::U32);
  d.op.a = d.constant(0);
  d.op.execute = &copy;
}

// createpolicy: hints of caches, which do nothing here.
void createpolicy(Decoder& d) {
  d.need(80, 74);
  while (d.modifiers_left() > 0 && (d.take_prefix("L2::") || d.take_any({"fractional", "range", "cvt", "global"}) != "")) continue;
  if (d.take_type() != Type::B64 || d.operands() < 1) return d.bad_type();
  d.op.d = d.out(0, Type::B64);
  d.op.a = d.constant(0);
  d.op.execute = &copy;
}

}  // namespace

void add_move(DecodeTable& table) {
  table["mov"] = &mov;
  table["cvta"] = &cvta;
  table["isspacep"] = &isspacep;
  table["mapa"] = &mapa;
  table["getctarank"] = &getctarank;
  table["createpolicy"] = &createpolicy;
}

}  // namespace kiln::simcuda::ptx
