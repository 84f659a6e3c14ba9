// atom and red: one lane after another. In global memory with compare-and-swap of the host, since blocks run on several host threads.
#include <algorithm>
#include <cstring>
#include <mutex>

#include "simcuda/ptx_arith.h"
#include "simcuda/ptx_block.h"
#include "simcuda/ptx_memory.h"
#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {
namespace {

using u64 = std::uint64_t;

enum class Do : std::uint8_t { And, Or, Xor, Exch, Cas, Add, Inc, Dec, Min, Max };
constexpr std::pair<std::string_view, Do> kNames[] = {{"and", Do::And}, {"or", Do::Or},   {"xor", Do::Xor}, {"exch", Do::Exch},
                                                      {"cas", Do::Cas}, {"add", Do::Add}, {"inc", Do::Inc}, {"dec", Do::Dec},
                                                      {"min", Do::Min}, {"max", Do::Max}};

u64 half(Do what, u64 a, u64 b, bool brain) {
  const auto value = [&](u64 v) { return brain ? from_bf16(v & 0xffff) : from_f16(v & 0xffff); };
  const double x = value(a), y = value(b);
  if (what == Do::Add) return narrow(add_to_odd(x, y), brain ? kBF16 : kF16, Round::Nearest);
  if (x != x || y != y) return x != x && y != y ? kNaN16 : (x != x ? b : a) & 0xffff;
  if (x == y) return ((a & 0x8000) != 0) == (what == Do::Min) ? a & 0xffff : b & 0xffff;
  return ((x < y) == (what == Do::Min) ? a : b) & 0xffff;
}

// The new value.
u64 update(Do what, Type t, bool flush, u64 old, u64 b, u64 c) {
  const unsigned width = bits_of(t);
  const u64 keep = width >= 64 ? ~u64{0} : (u64{1} << width) - 1;
  const auto as_signed = [&](u64 v) { return static_cast<std::int64_t>(v << (64 - width)) >> (64 - width); };
  switch (what) {
    case Do::And: return old & b;
    case Do::Or: return old | b;
    case Do::Xor: return old ^ b;
    case Do::Exch: return b;
    case Do::Cas: return old == b ? c : old;
    case Do::Inc: return old >= b ? 0 : old + 1;
    case Do::Dec: return old == 0 || old > b ? b : old - 1;
    default: break;
  }
  switch (t) {
    case Type::F32: {
      const float r = f32(flush ? flush32(old) : old) + f32(flush ? flush32(b) : b);
      return flush ? flush32(result(r)) : result(r);
    }
    case Type::F64: return result(f64(old) + f64(b));
    case Type::F16: return half(what, old, b, false);
    case Type::BF16: return half(what, old, b, true);
    case Type::F16x2: return half(what, old, b, false) | half(what, old >> 16, b >> 16, false) << 16;
    case Type::BF16x2: return half(what, old, b, true) | half(what, old >> 16, b >> 16, true) << 16;
    default: break;
  }
  if (what == Do::Add) return (old + b) & keep;
  const bool less = is_signed(t) ? as_signed(old) < as_signed(b) : old < b;
  return less == (what == Do::Min) ? old : b;
}

template <class T>
u64 swap_loop(std::byte* p, const auto& f) {
  T* at = reinterpret_cast<T*>(p);
  T old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  while (!__atomic_compare_exchange_n(at, &old, static_cast<T>(f(old)), false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) continue;
  return old;
}

void execute(Warp& w, const Op& o, Mask m) {
  const u64 *a = w.in(o.a), *b0 = nullptr, *c = w.in(o.c);
  const auto what = static_cast<Do>(o.code);
  const auto t = static_cast<Type>(o.type);
  if (o.fence && w.block->races) lanes(m, [&](unsigned l) { w.block->races->clock().fence(w.index * 32 + l); });
  for (const std::uint8_t l : w.order) {
    if ((m >> l & 1) == 0) continue;
    const u64 address = a[l] + static_cast<u64>(o.imm);
    std::byte* p = place(w, o, l, address, o.bytes * o.count, o.overwrites ? Access::Write : Access::Atomic);
    const bool flush = t == Type::F32 && !in_shared(o, address);
    for (unsigned k = 0; k < o.count; ++k) {
      b0 = w.in(o.v[k]);
      const u64 b = b0[l], third = c[l];
      const auto f = [&](u64 old) { return update(what, t, flush, old, b, third); };
      std::byte* at = p + k * o.bytes;
      const u64 old = o.bytes == 2   ? swap_loop<std::uint16_t>(at, f)
                      : o.bytes == 4 ? swap_loop<std::uint32_t>(at, f)
                                     : swap_loop<u64>(at, f);
      if (o.sign) w.out(o.v[8 + k])[l] = old;
    }
  }
}

std::mutex& wide_mutex() {
  static std::mutex mutex;
  return mutex;
}

// exch and cas of 128 bits; atomic among themselves.
void execute_wide(Warp& w, const Op& o, Mask m) {
  const u64 *a = w.in(o.a), *b = w.in(o.b), *b2 = w.in(next(o.b)), *c = w.in(o.c), *c2 = w.in(next(o.c));
  for (const std::uint8_t l : w.order) {
    if ((m >> l & 1) == 0) continue;
    std::byte* p = place(w, o, l, a[l] + static_cast<u64>(o.imm), 16, o.overwrites ? Access::Write : Access::Atomic);
    u64 old[2];
    {
      const std::lock_guard lock(wide_mutex());
      std::memcpy(old, p, 16);
      const bool swap = static_cast<Do>(o.code) == Do::Exch || (old[0] == b[l] && old[1] == b2[l]);
      const u64 fresh[2] = {static_cast<Do>(o.code) == Do::Exch ? b[l] : c[l], static_cast<Do>(o.code) == Do::Exch ? b2[l] : c2[l]};
      if (swap) std::memcpy(p, fresh, 16);
    }
    if (o.sign) {
      w.out(o.d)[l] = old[0];
      w.out(next(o.d))[l] = old[1];
    }
  }
}

bool allowed(Do what, Type t, bool is_red) {
  switch (what) {
    case Do::And:
    case Do::Or:
    case Do::Xor: return t == Type::B32 || t == Type::B64;
    case Do::Exch: return !is_red && (t == Type::B32 || t == Type::B64 || t == Type::B128);
    case Do::Cas: return !is_red && (t == Type::B16 || t == Type::B32 || t == Type::B64 || t == Type::B128);
    case Do::Add:
      return t == Type::U32 || t == Type::S32 || t == Type::U64 || t == Type::F32 || t == Type::F64 || t == Type::F16 || t == Type::F16x2 ||
             t == Type::BF16 || t == Type::BF16x2;
    case Do::Inc:
    case Do::Dec: return t == Type::U32;
    default:
      return t == Type::U32 || t == Type::S32 || t == Type::U64 || t == Type::S64 || t == Type::F16 || t == Type::F16x2 ||
             t == Type::BF16 || t == Type::BF16x2;
  }
}

template <bool Red>
void atomic(Decoder& d) {
  if (d.take("async")) return d.unknown("red.async");
  if (Red && (d.has("acquire") || d.has("acq_rel"))) return d.error("Illegal modifier '.acquire' for instruction 'red'");
  take_semantics(d);
  d.op.atomic = true;
  const auto space = take_memory_space(d);
  std::optional<Do> what;
  for (const auto& [name, value] : kNames)
    if (!what && d.take(name)) what = value;
  if (!what) return d.error("Missing operation for instruction '" + std::string(d.name()) + "'");
  const bool noftz = d.take("noftz");
  const bool policy = take_hints(d);
  const unsigned vector = d.take("v2") ? 2 : d.take("v4") ? 4 : d.take("v8") ? 8 : 1;
  const Type t = d.take_type();
  if (!allowed(*what, t, Red)) {
    std::string op_name;
    for (const auto& [name, value] : kNames)
      if (value == *what) op_name = std::string(name);
    return d.error("Operation ." + op_name + " does not go with type ." + std::string(name_of(t)) + " for instruction '" +
                   std::string(d.name()) + "'");
  }
  const bool halves = t == Type::F16 || t == Type::F16x2 || t == Type::BF16 || t == Type::BF16x2;
  if (halves != noftz) return d.bad_type();
  if (halves && *what != Do::Add && vector == 1)
    return d.error("Vector modifier required for instruction '" + std::string(d.name()) + "' of halves");
  if (t == Type::BF16 || t == Type::BF16x2 || (halves && *what != Do::Add)) d.need(90, 78);
  if (t == Type::B128) d.need(90, 83);
  if (t == Type::B16) d.need(70, 63);
  if (vector > 1) {
    d.need(90, 81, "vector atomics");
    if ((t != Type::F32 && !halves) || bytes_of(t) * vector > 16) return d.bad_type();
  }
  const std::size_t values = *what == Do::Cas ? 2 : 1;
  const std::size_t first = Red ? 0 : 1;
  if (!d.count(first + 1 + values + (policy ? 1 : 0))) return;
  const Operand& address = d.operand(first);
  d.address(address, space.value_or(Space::Generic), space.has_value());
  if (d.failed()) return;
  if (d.op.space != Space::Generic && d.op.space != Space::Global && d.op.space != Space::Shared) {
    return d.error("Illegal state space for instruction '" + std::string(d.name()) + "'");
  }
  d.op.code = static_cast<std::uint8_t>(*what);
  d.op.type = static_cast<std::uint8_t>(t);
  d.op.bytes = static_cast<std::uint8_t>(bytes_of(t));
  d.op.count = static_cast<std::uint8_t>(vector);
  d.op.c = d.constant(0);
  const Type operand = t == Type::BF16 ? Type::B16 : is_packed(t) ? Type::B32 : t;
  const Operand& value = d.operand(first + 1);
  if (t == Type::B128) {
    d.op.b = d.in(value, t);
    d.op.c = values == 2 ? d.in(first + 2, t) : d.op.b;
    d.op.execute = &execute_wide;
  } else if (vector > 1) {
    if (value.kind != Operand::Kind::Vector || value.parts.size() != vector) return d.mismatch();
    for (unsigned k = 0; k < vector; ++k) d.op.v[k] = d.in(value.parts[k], operand);
    d.op.execute = &execute;
  } else {
    d.op.v[0] = d.in(value, operand);
    if (values == 2) d.op.c = d.in(first + 2, operand);
    d.op.execute = &execute;
  }
  if (!Red && d.operand(0).kind != Operand::Kind::Sink) {
    d.op.sign = true;
    const Operand& to = d.operand(0);
    if (vector > 1) {
      if (to.kind != Operand::Kind::Vector || to.parts.size() != vector) return d.mismatch();
      for (unsigned k = 0; k < vector; ++k) d.op.v[8 + k] = d.out(to.parts[k], operand);
    } else {
      d.op.d = d.op.v[8] = d.out(to, operand);
    }
  }
  d.op.overwrites = *what == Do::Exch && d.unread(d.operand(0));
  count_memory_op(d, bytes_of(t) * vector);
}

}  // namespace

void add_atomic(DecodeTable& table) {
  table["atom"] = &atomic<false>;
  table["red"] = &atomic<true>;
}

}  // namespace kiln::simcuda::ptx
