// Loads and stores of every space, prefetches, and cp.async (done at once).
#include "simcuda/ptx_memory.h"

#include <algorithm>
#include <cstring>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_block.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

template <unsigned Size>
u64 read(const std::byte* p) {
  if constexpr (Size == 1) return __atomic_load_n(reinterpret_cast<const std::uint8_t*>(p), __ATOMIC_RELAXED);
  else if constexpr (Size == 2) return __atomic_load_n(reinterpret_cast<const std::uint16_t*>(p), __ATOMIC_RELAXED);
  else if constexpr (Size == 4) return __atomic_load_n(reinterpret_cast<const std::uint32_t*>(p), __ATOMIC_RELAXED);
  else return __atomic_load_n(reinterpret_cast<const u64*>(p), __ATOMIC_RELAXED);
}
template <unsigned Size>
void write(std::byte* p, u64 v) {
  if constexpr (Size == 1) __atomic_store_n(reinterpret_cast<std::uint8_t*>(p), static_cast<std::uint8_t>(v), __ATOMIC_RELAXED);
  else if constexpr (Size == 2) __atomic_store_n(reinterpret_cast<std::uint16_t*>(p), static_cast<std::uint16_t>(v), __ATOMIC_RELAXED);
  else if constexpr (Size == 4) __atomic_store_n(reinterpret_cast<std::uint32_t*>(p), static_cast<std::uint32_t>(v), __ATOMIC_RELAXED);
  else __atomic_store_n(reinterpret_cast<u64*>(p), v, __ATOMIC_RELAXED);
}

u64 offset_of(const Warp& w, const Op& o) { return static_cast<u64>(o.imm) + (o.in_frame ? w.frame->local : 0); }

void order(Warp& w, const Op& o, Mask m) {
  if (!o.fence) return;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (w.block->races) lanes(m, [&](unsigned l) { w.block->races->clock().fence(w.index * 32 + l); });
}

template <unsigned Size>
void load(Warp& w, const Op& o, Mask m) {
  const u64* a = w.in(o.a);
  const u64 offset = offset_of(w, o);
  const unsigned shift = 64 - 8 * Size;
  const u64 keep = o.bits >= 64 ? ~u64{0} : (u64{1} << o.bits) - 1;
  const auto value = [&](const std::byte* p) {
    const u64 v = read<Size>(p);
    return o.sign ? static_cast<u64>(static_cast<std::int64_t>(v << shift) >> shift) & keep : v;
  };
  if (o.space == Space::Param && o.entry_param && o.a < 0) {  // one value for all
    const std::byte* p = place(w, o, static_cast<unsigned>(std::countr_zero(m)), a[0] + offset, Size * o.count, Access::Read);
    for (unsigned k = 0; k < o.count; ++k) {
      const u64 v = value(p + k * Size);
      u64* d = w.out(o.v[k]);
      lanes(m, [&](unsigned l) { d[l] = v; });
    }
    return;
  }
  if (o.count == 1) {
    u64* d = w.out(o.v[0]);
    for (Mask rest = m; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(rest));
      d[l] = value(place(w, o, l, a[l] + offset, Size, Access::Read));
    }
  } else {
    for (Mask rest = m; rest != 0; rest &= rest - 1) {
      const auto l = static_cast<unsigned>(std::countr_zero(rest));
      const std::byte* p = place(w, o, l, a[l] + offset, Size * o.count, Access::Read);
      for (unsigned k = 0; k < o.count; ++k) w.out(o.v[k])[l] = value(p + k * Size);
    }
  }
  order(w, o, m);
}

template <unsigned Size>
void store(Warp& w, const Op& o, Mask m) {
  order(w, o, m);
  const u64* a = w.in(o.a);
  const u64 offset = offset_of(w, o);
  for (const std::uint8_t l : w.order) {
    if ((m >> l & 1) == 0) continue;
    std::byte* p = place(w, o, l, a[l] + offset, Size * o.count, Access::Write);
    for (unsigned k = 0; k < o.count; ++k) write<Size>(p + k * Size, w.in(o.v[k])[l]);
  }
}

template <bool Store>
Execute by_size(unsigned size) {
  switch (size) {
    case 1: return Store ? &store<1> : &load<1>;
    case 2: return Store ? &store<2> : &load<2>;
    case 4: return Store ? &store<4> : &load<4>;
    default: return Store ? &store<8> : &load<8>;
  }
}

unsigned take_vector(Decoder& d) {
  if (d.take("v2")) return 2;
  if (d.take("v4")) return 4;
  if (d.take("v8")) return 8;
  return 1;
}

template <bool Store>
void load_store(Decoder& d) {
  take_semantics(d);
  const auto space = take_memory_space(d);
  if (!Store) d.take("nc");
  const bool policy = take_hints(d);
  const unsigned vector = take_vector(d);
  const Type t = d.take_type();
  const std::size_t wanted = policy ? 3 : 2;
  if (t == Type::None || t == Type::Pred || is_packed(t) || t == Type::TF32 || (t == Type::F16 || t == Type::BF16)) return d.bad_type();
  if (!d.count(wanted)) return;
  if (Store && (space == Space::Const)) return d.error("Illegal state space for instruction 'st'");
  const Operand& address = d.operand(Store ? 0 : 1);
  const Operand& value = d.operand(Store ? 1 : 0);
  d.address(address, space.value_or(Space::Generic), space.has_value());
  if (d.failed()) return;
  if (Store && d.op.entry_param)
    return d.error("Illegal to write to function input parameter '" + std::string(address.parts[0].name) + "'");
  if (address.parts.size() > 1) return d.unknown("an address with several parts");
  const unsigned total = bytes_of(t) * vector;
  if (total > 32 || (total == 32 && vector == 2 && t == Type::B128)) return d.error("Illegal vector size: " + std::to_string(vector));
  if (total == 32) d.need(100, 88, "256 bit wide load/store");
  if (t == Type::B128) d.need(70, 83, "128 bit type");
  d.op.bytes = static_cast<std::uint8_t>(std::min(bytes_of(t), 8u));
  d.op.sign = is_signed(t);
  std::vector<const Operand*> parts{&value};
  if (vector > 1 || value.kind == Operand::Kind::Vector) {
    if (value.kind != Operand::Kind::Vector || value.parts.size() != vector) {
      return d.error("Argument vector size mismatch for instruction '" + std::string(d.name()) + "'");
    }
    parts.clear();
    for (const Operand& p : value.parts) parts.push_back(&p);
  }
  unsigned k = 0;
  for (const Operand* p : parts) {
    const Slot s = Store ? d.in(*p, t, Decoder::Width::AtLeast) : d.out(*p, t, Decoder::Width::AtLeast);
    d.op.v[k++] = s;
    if (t == Type::B128) d.op.v[k++] = next(s);
    const unsigned have = bits_of(d.register_type(*p));
    if (have != 0) d.op.bits = std::max(d.op.bits, static_cast<std::uint8_t>(std::min(have, 64u)));
  }
  if (d.op.bits == 0) d.op.bits = 64;
  d.op.count = static_cast<std::uint8_t>(k);
  d.op.execute = by_size<Store>(d.op.bytes);
  if (d.op.sign && !Store && d.op.bits == bits_of(t)) d.op.sign = false;  // nothing to extend
  count_memory_op(d, total);
  if (policy) d.in(2, Type::B64);
}

// Does nothing but check that it is one.
void nothing(Warp&, const Op&, Mask) {}

void prefetch(Decoder& d) {
  const auto space = take_memory_space(d);
  if (d.take("tensormap")) return d.unknown("a tensor map");
  take_hints(d);
  if (d.take_any({"L1", "L2"}).empty()) d.take_prefix("L2::");
  if (!d.count(1)) return;
  d.address(d.operand(0), space.value_or(Space::Generic), space.has_value());
  d.op.execute = &nothing;
}

void hint(Decoder& d) {  // discard, applypriority
  const auto space = take_memory_space(d);
  d.need(80, 74);
  d.take("L2");
  d.take_prefix("L2::");
  if (!d.count(2)) return;
  d.address(d.operand(0), space.value_or(Space::Generic), space.has_value());
  d.op.execute = &nothing;
}

// cp.async copies at once: later than allowed is never asked for, and what reads too early is not found out.
void cp(Decoder& d) {
  if (!d.take("async")) return d.unknown("this kind of cp");
  d.need(80, 70, "cp.async");
  if (d.take("bulk") || d.take("mbarrier") || d.take("reduce")) return d.unknown("cp.async.bulk and its barriers");
  d.op.execute = &nothing;
  if (d.take("commit_group") || d.take("wait_all")) {
    d.count(0);
    return;
  }
  if (d.take("wait_group")) {
    if (d.count(1) && !d.integer(d.operand(0))) d.mismatch();
    return;
  }
  const std::string_view level = d.take_any({"ca", "cg"});
  if (level.empty() || d.take_any({"shared", "shared::cta"}).empty() || !d.take("global")) return d.bad_type();
  const bool policy = take_hints(d);
  if (d.operands() < 3 + (policy ? 1u : 0u)) return d.mismatch();
  const auto size = d.integer(d.operand(2));
  if (!size || (*size != 16 && (level == "cg" || (*size != 4 && *size != 8)))) return d.mismatch();
  // The two addresses: the shared one in the usual fields, the global one in v[0] and the frame-free offset in v[1].
  d.address(d.operand(1), Space::Global, true);
  if (d.failed()) return;
  d.op.v[0] = d.op.a;
  d.op.c = d.constant(static_cast<u64>(d.op.imm));
  d.address(d.operand(0), Space::Shared, true);
  d.op.count = 1;
  d.op.bytes = static_cast<std::uint8_t>(*size);
  d.op.b = d.operands() > 3 + (policy ? 1u : 0u) ? d.in(3, Type::U32) : d.constant(static_cast<u64>(*size));
  count_memory_op(d, static_cast<unsigned>(*size));
  d.op.execute = [](Warp& w, const Op& o, Mask m) {
    const u64 *to = w.in(o.a), *from = w.in(o.v[0]), *plus = w.in(o.c), *bytes = w.in(o.b);
    Op source = o;
    source.space = Space::Global;
    lanes(m, [&](unsigned l) {
      std::byte* d2 = place(w, o, l, to[l] + static_cast<u64>(o.imm), o.bytes, Access::Write);
      const unsigned n = std::min<unsigned>(static_cast<unsigned>(bytes[l]), o.bytes);
      std::memset(d2, 0, o.bytes);
      if (n == 0) return;
      if (n == o.bytes) {
        std::memcpy(d2, place(w, source, l, from[l] + plus[l], o.bytes, Access::Read), o.bytes);
      } else {
        for (unsigned k = 0; k < n; ++k) d2[k] = *place(w, source, l, from[l] + plus[l] + k, 1, Access::Read);
      }
    });
  };
}

}  // namespace

std::optional<Space> take_memory_space(Decoder& d) {
  constexpr std::pair<std::string_view, Space> kSpaces[] = {{"global", Space::Global},
                                                            {"shared", Space::Shared},
                                                            {"local", Space::Local},
                                                            {"const", Space::Const},
                                                            {"param", Space::Param},
                                                            {"shared::cta", Space::Shared},
                                                            {"shared::cluster", Space::Shared},
                                                            {"param::entry", Space::Param},
                                                            {"param::func", Space::Param}};
  for (const auto& [name, space] : kSpaces)
    if (d.take(name)) return space;
  return std::nullopt;
}

bool take_hints(Decoder& d) {
  d.take_any({"ca", "cg", "cs", "lu", "cv", "wb", "wt"});
  d.take("unified");
  const bool policy = d.take("L2::cache_hint");
  d.take_prefix("L1::");
  d.take_prefix("L2::");
  return policy;
}

void take_semantics(Decoder& d) {
  const std::string_view s = d.take_any({"mmio", "weak", "relaxed", "acquire", "release", "acq_rel", "volatile"});
  if (s == "mmio") d.take("relaxed");
  const std::string_view scope = d.take_any({"cta", "cluster", "gpu", "sys"});
  if (scope == "cluster") d.need(90, 78, ".cluster scope");
  if ((s == "relaxed" || s == "acquire" || s == "release" || s == "acq_rel") && scope.empty() && (d.name() == "ld" || d.name() == "st")) {
    d.error("Scope modifier required for instruction '" + std::string(d.name()) + "'");
  }
  d.op.atomic = !s.empty() && s != "weak";
  d.op.fence = s == "acquire" || s == "release" || s == "acq_rel";
  d.function().fences = d.function().fences || d.op.fence;
}

void count_memory_op(Decoder& d, unsigned size) {
  Function& f = d.function();
  d.op.memory = true;
  d.op.target = f.memory_ops++;
  const Space s = d.op.space;
  const std::uint32_t least = std::min(size, std::max<unsigned>(d.op.bytes, 1));
  f.any_granule = std::min(f.any_granule, least);
  if (s == Space::Shared || s == Space::Generic) f.shared_granule = std::min(f.shared_granule, least);
}

void add_memory(DecodeTable& table) {
  table["ld"] = &load_store<false>;
  table["ldu"] = &load_store<false>;
  table["st"] = &load_store<true>;
  table["prefetch"] = &prefetch;
  table["prefetchu"] = &prefetch;
  table["discard"] = &hint;
  table["applypriority"] = &hint;
  table["cp"] = &cp;
}

}  // namespace kiln::simcuda::ptx
