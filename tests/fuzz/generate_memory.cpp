// Accesses: to the inputs, to the thread's own elements and its local memory, and the indices of them, in range or on the edge of it.
#include <algorithm>

#include "fuzz/generator_impl.h"

namespace kiln::fuzz {

using ir::kNone;
using ir::Opcode;
using ir::Type;
using ir::ValueId;

// The extent less a number, as a constant or from the launch.
ValueId Generator::extent_minus(const Memory& m, unsigned dimension, Type t, std::uint64_t less) {
  if (r_.chance(40)) return b_.constant(t, (m.extents[dimension] - less) & ir::value_mask(t));
  const ValueId n = t == Type::U32 || t == Type::U64 ? b_.extent(m.mem, dimension, t) : b_.cast(t, b_.extent(m.mem, dimension, Type::U32));
  return less == 0 ? n : b_.binary(Opcode::Sub, n, b_.constant(t, less & ir::value_mask(t)));
}

// factor * (something that counts the threads) + a constant. On the edge: some thread's index is the last one, the extent or one more.
// Inside: no index reaches the extent, or none is given.
ValueId Generator::side_by_side(const Memory& m, unsigned dimension, bool edge) {
  const std::uint64_t n = m.extents[dimension];
  const Type t = r_.chance(65) ? Type::U32 : index_type(n + 3 * total_);
  struct Counter {
    ValueId id;
    std::uint64_t count;
  } c{linear_, total_};
  switch (r_.below(4)) {
    case 0: c = {thread_, threads_}; break;
    case 1: c = {b_.query(Opcode::LaneId), std::min(threads_, 32u)}; break;
    case 2: c = {b_.query(Opcode::ThreadId, 0), case_.block[0]}; break;
    default: break;
  }
  const std::uint64_t factor = r_.chance(65) ? 1 : 1 + r_.below(3), reach = factor * (c.count - 1);
  const bool backwards = r_.chance(20);
  if (!edge && reach >= n) return kNone;
  ValueId i = t == Type::U32 ? c.id : b_.cast(t, c.id);
  if (factor != 1) i = b_.binary(Opcode::Mul, i, b_.constant(t, factor));
  if (edge) {
    // The thread that is to meet the edge: any, or the last one of a warp.
    std::uint64_t thread = r_.below(static_cast<std::uint32_t>(c.count));
    if (r_.chance(50)) thread = std::min(thread | 31, c.count - 1);
    const std::uint64_t at = factor * thread;
    const std::uint64_t beyond = r_.below(3);                                                            // 0: the last element
    if (backwards && r_.chance(50)) return b_.binary(Opcode::Sub, b_.constant(t, at - r_.below(2)), i);  // passes 0 downwards
    if (backwards) return b_.binary(Opcode::Sub, extent_minus(m, dimension, t, 1 - beyond - at), i);
    return b_.binary(Opcode::Add, i, extent_minus(m, dimension, t, at + 1 - beyond));
  }
  const std::uint64_t slack = n - 1 - reach, by = r_.chance(30)   ? slack
                                                  : r_.chance(30) ? 0
                                                                  : r_.below(static_cast<std::uint32_t>(slack + 1));
  if (backwards) return b_.binary(Opcode::Sub, b_.constant(t, reach + by), i);
  return by == 0 ? i : b_.binary(Opcode::Add, i, b_.constant(t, by));
}

ValueId Generator::index_at_edge(const Memory& m, unsigned dimension, bool uniform) {
  case_.may_fault = true;
  const Type t = r_.chance(50) ? Type::U32 : index_type(m.extents[dimension]);
  const auto near = [&] { return extent_minus(m, dimension, t, 1 - std::uint64_t{r_.below(3)}); };
  if (uniform) return r_.chance(80) ? near() : value(t, 1, true).id;
  switch (r_.below(7)) {
    case 0: return value(t, 2).id;
    case 1: return near();
    case 2: return b_.select(divergent_bool(), near(), b_.constant(t, r_.below(2)));
    case 3: {  // scattered: n - 2, ..., n + 1
      const ValueId low = b_.binary(Opcode::And, varying(t).id, b_.constant(t, 3));
      return b_.binary(Opcode::Add, low, extent_minus(m, dimension, t, 2));
    }
    default: return side_by_side(m, dimension, true);
  }
}

ValueId Generator::index_inside(const Memory& m, unsigned dimension, bool uniform) {
  const std::uint64_t n = m.extents[dimension];
  if (uniform && r_.chance(40)) return b_.constant(index_type(n), r_.chance(50) ? n - 1 : r_.below(static_cast<std::uint32_t>(n)));
  if (!uniform && r_.chance(60)) {
    const ValueId i = side_by_side(m, dimension, false);
    if (i != kNone) return i;
  }
  const Type t = r_.chance(75) ? Type::U32 : Type::U64;
  const ValueId raw = uniform ? value(t, 1, true).id : varying(t).id;
  switch (r_.below(4)) {
    case 0:
      if (!too_dear(Opcode::Rem, t)) return b_.binary(Opcode::Rem, raw, b_.extent(m.mem, dimension, t));
      [[fallthrough]];
    case 1: {
      const ValueId extent = b_.extent(m.mem, dimension, t);
      return b_.select(b_.binary(Opcode::Lt, raw, extent), raw, extent_minus(m, dimension, t, 1 + r_.below(static_cast<std::uint32_t>(n))));
    }
    case 2: {  // a power of two below the extent
      std::uint64_t mask = 1;
      while (mask * 2 <= n) mask *= 2;
      return b_.binary(Opcode::And, raw, b_.constant(t, mask - 1));
    }
    default: return b_.binary(Opcode::Min, raw, extent_minus(m, dimension, t, 1));
  }
}

ValueId Generator::index_into(const Memory& m, unsigned dimension, bool uniform) {
  if (m.extents[dimension] == 0 || (faults_ && r_.chance(45))) return index_at_edge(m, dimension, uniform);
  return index_inside(m, dimension, uniform);
}

Generator::Value Generator::load_input(Type t, bool uniform) {
  std::vector<const Memory*> fit;
  for (const Memory& m : inputs_)
    if (m.type == t) fit.push_back(&m);
  if (fit.empty()) return leaf(t, uniform);
  const Memory& m = *r_.pick(fit);
  std::vector<ValueId> at;
  for (unsigned d = 0; d < m.extents.size(); ++d) at.push_back(index_into(m, d, uniform || r_.chance(d + 1 < m.extents.size() ? 50 : 20)));
  return keep(b_.load(m.mem, std::move(at)), uniform);
}

// Two to four elements side by side, which a device may load at once: at the end of the memory or aligned, in any order.
void Generator::adjacent_loads(const Memory& m) {
  const std::uint64_t n = m.extents.back();
  const std::uint64_t count = std::min<std::uint64_t>(n, 2 + r_.below(3));
  if (count == 0) return;
  std::vector<ValueId> at;
  for (unsigned d = 0; d + 1 < m.extents.size(); ++d) at.push_back(index_inside(m, d, true));
  const Type t = r_.chance(70) ? Type::U32 : Type::U64;
  ValueId base = kNone;
  const std::uint64_t step = r_.chance(60) ? 4 : count;
  if (n >= 2 * step && r_.chance(50)) {
    std::uint64_t groups = 1;
    while (groups * 2 * step <= n - count + step) groups *= 2;
    base = b_.binary(Opcode::Mul, b_.binary(Opcode::And, varying(t).id, b_.constant(t, groups - 1)), b_.constant(t, step));
  } else {
    base = b_.constant(t, r_.chance(70) ? n - count : std::min(n - count, step * r_.below(4)));
  }
  const std::uint64_t first = r_.below(static_cast<std::uint32_t>(count));
  for (std::uint64_t k = 0; k < count; ++k) {
    at.push_back(b_.binary(Opcode::Add, base, b_.constant(t, (first + k) % count)));
    fold(keep(b_.load(m.mem, at), false).id);
    at.pop_back();
  }
}

void Generator::input_statement() {
  if (inputs_.empty()) return own_statement();
  if (r_.chance(30)) return adjacent_loads(r_.pick(inputs_));
  fold(load_input(r_.pick(inputs_).type, false).id);
}

// if (i < n) ... load m[i], and a neighbour of it: what the bounds prover reasons about. The guard is enough, or the kernel may fault.
void Generator::guarded_statement() {
  if (inputs_.empty()) return own_statement();
  const Memory& m = r_.pick(inputs_);
  const bool sloppy = faults_ && r_.chance(40);
  std::vector<ValueId> at;
  ValueId guard = kNone;
  Type t = Type::U32;
  for (unsigned d = 0; d < m.extents.size(); ++d) {
    t = r_.pick(std::vector<Type>{Type::U32, Type::U32, Type::U32, Type::I32, Type::U64});
    ValueId i = r_.chance(60) ? varying(t).id : t == Type::U32 ? linear_ : b_.cast(t, linear_);
    if (r_.chance(40)) i = b_.binary(r_.chance(50) ? Opcode::Add : Opcode::Sub, i, b_.constant(t, 1 + r_.below(4)));
    const ValueId n = t == Type::I32 ? b_.cast(t, b_.extent(m.mem, d)) : b_.extent(m.mem, d, t);
    ValueId g = b_.binary(sloppy && r_.chance(30) ? Opcode::Le : Opcode::Lt, i, n);
    if (t == Type::I32 && !(sloppy && r_.chance(30))) g = b_.binary(Opcode::And, b_.binary(Opcode::Ge, i, b_.const_i32(0)), g);
    guard = d == 0 ? g : b_.binary(sloppy && r_.chance(20) ? Opcode::Or : Opcode::And, guard, g);
    at.push_back(i);
  }
  if (sloppy) case_.may_fault = true;
  in_region(b_.if_(guard), 0, [&] {
    fold(keep(b_.load(m.mem, at), false).id);
    const bool above = r_.chance(60);
    const ValueId one = b_.constant(t, 1), near = b_.binary(above ? Opcode::Add : Opcode::Sub, at.back(), one);
    const ValueId limit = above ? extent_minus(m, static_cast<unsigned>(at.size()) - 1, t, 1) : one;
    std::vector<ValueId> beside = at;
    beside.back() = near;
    if (faults_ && r_.chance(40)) {
      case_.may_fault = true;
      fold(keep(b_.load(m.mem, beside), false).id);
    } else if (r_.chance(50)) {
      in_region(b_.if_(b_.binary(above ? Opcode::Lt : Opcode::Ge, at.back(), limit)), 0,
                [&] { fold(keep(b_.load(m.mem, beside), false).id); });
    }
  });
}

void Generator::own_statement() {
  const Memory& m = r_.pick(own_);
  std::vector<ValueId> at = m.cell;
  if (faults_ && r_.chance(25)) {  // some threads' elements lie behind the end
    case_.may_fault = true;
    const ValueId beyond = b_.extent(m.mem, static_cast<unsigned>(at.size()) - 1);
    at.back() = b_.select(divergent_bool(), at.back(), r_.chance(60) ? beyond : b_.binary(Opcode::Add, beyond, b_.const_u32(1)));
  }
  switch (r_.below(4)) {
    case 0: fold(keep(b_.load(m.alias != kNone && r_.chance(50) ? m.alias : m.mem, at), false).id); break;
    case 1:
      if (shape_.atomics && ir::bit_width(m.type) >= 32) {  // alone on its cell: results are known
        static const std::vector<Opcode> on_floats{Opcode::AtomicAdd, Opcode::AtomicMin, Opcode::AtomicMax, Opcode::AtomicExchange};
        static const std::vector<Opcode> on_integers{Opcode::AtomicAdd, Opcode::AtomicSub, Opcode::AtomicMin, Opcode::AtomicMax,
                                                     Opcode::AtomicAnd, Opcode::AtomicOr,  Opcode::AtomicXor, Opcode::AtomicExchange};
        ValueId old = kNone;
        if (ir::is_float(m.type)) {
          old = b_.atomic(r_.pick(on_floats), m.mem, at, value(m.type, 2).id);
        } else if (r_.chance(20)) {
          const ValueId expected = r_.chance(60) ? b_.load(m.mem, at) : value(m.type, 1).id, desired = varying(m.type).id;
          old = b_.atomic_cas(m.mem, at, expected, desired);
        } else {
          old = b_.atomic(r_.pick(on_integers), m.mem, at, value(m.type, 2).id);
        }
        fold(keep(old, false).id);
        break;
      }
      [[fallthrough]];
    default:
      b_.store(m.mem, at, value(m.type, 2).id);
      if (r_.chance(30)) fold(b_.load(m.mem, at));
      if (m.alias != kNone && r_.chance(60)) fold(b_.load(m.alias, at));
  }
}

void Generator::local_statement() {
  if (local_.mem == kNone) return own_statement();
  const auto index = [&] {
    if (faults_ && r_.chance(40)) return index_at_edge(local_, 0, false);
    return b_.binary(Opcode::And, varying(Type::U32).id, b_.const_u32(7));
  };
  const ValueId i = index();
  b_.store(local_.mem, {i}, value(local_.type, 2).id);
  fold(keep(b_.load(local_.mem, {index()}), false).id);
}

}  // namespace kiln::fuzz
