// The launch and its data, declarations, and the first lines of a kernel.
#include <algorithm>
#include <bit>

#include "fuzz/generator_impl.h"

namespace kiln::fuzz {

using ir::kNone;
using ir::Opcode;
using ir::Type;

// Lanes of 64 bits make twice the code on every level, and four times on the lowest: not in every kernel.
void Generator::choose_types() {
  types_ = {Type::Bool, Type::U32};
  if (r_.chance(45)) {
    const std::vector<Type> narrow{Type::I8, Type::U8, Type::I16, Type::U16, Type::F16, Type::BF16, Type::F16, Type::BF16};
    const Type first = r_.pick(narrow), second = r_.pick(std::vector<Type>{Type::I8, Type::U8, Type::I16, Type::U16, Type::I32, Type::F32,
                                                                           Type::I64, Type::U64, Type::F64, Type::F16, Type::BF16});
    types_.push_back(first);
    if (second != first) types_.push_back(second);
    if (r_.chance(35)) {  // what only floats convert to and from
      types_.push_back(r_.chance(50) ? Type::E4M3 : Type::E5M2);
      if (!ir::is_float(first) && !ir::is_float(second)) types_.push_back(r_.pick(std::vector<Type>{Type::F16, Type::BF16, Type::F32}));
    }
  } else if (r_.chance(45)) {
    const std::vector<Type> wide{Type::I64, Type::U64, Type::F64};
    const Type first = r_.pick(wide), second = r_.pick(std::vector<Type>{Type::I32, Type::F32, Type::I64, Type::U64, Type::F64});
    types_.push_back(first);
    if (second != first) types_.push_back(second);
  } else {
    types_.insert(types_.end(), {Type::I32, Type::F32});
  }
  for (const Type t : types_) {
    if (ir::is_integer(t)) integers_.push_back(t);
    if (ir::is_float(t)) floats_.push_back(t);
    if (!ir::is_bool(t)) elements_.push_back(t);
    if (!ir::is_bool(t) && !ir::is_float8(t)) numbers_.push_back(t);
  }
  if (floats_.empty()) floats_ = {Type::F32};
}

void Generator::choose_launch() {
  static const std::vector<std::array<std::uint32_t, 3>> blocks{{32, 1, 1}, {64, 1, 1}, {1, 1, 1},  {7, 1, 1}, {31, 1, 1}, {33, 1, 1},
                                                                {45, 1, 1}, {65, 1, 1}, {96, 1, 1}, {8, 4, 1}, {16, 3, 1}, {5, 7, 1},
                                                                {4, 4, 2},  {32, 2, 1}, {3, 5, 3},  {64, 1, 1}};
  case_.block = r_.pick(blocks);
  case_.grid = {1 + r_.below(3), r_.chance(15) ? 2u : 1u, r_.chance(5) ? 2u : 1u};
  threads_ = case_.block[0] * case_.block[1] * case_.block[2];
  total_ = threads_ * case_.grid[0] * case_.grid[1] * case_.grid[2];
  if (r_.chance(30)) case_.kernel.block_size = case_.block;
  else if (r_.chance(20)) case_.kernel.max_threads = threads_ + r_.below(20);
}

// Every element in a place of its own, in any order of the dimensions and with gaps; what is only read may lie over itself.
std::vector<std::uint64_t> Generator::any_strides(const std::vector<std::uint64_t>& extents, bool overlapping) {
  std::vector<std::uint64_t> strides(extents.size());
  std::vector<unsigned> order;
  for (unsigned d = 0; d < extents.size(); ++d) order.insert(order.begin() + r_.below(d + 1), d);
  std::uint64_t next = 1;
  for (const unsigned d : order) {
    strides[d] = next + (r_.chance(50) ? 0 : r_.below(3));
    next = strides[d] * std::max<std::uint64_t>(1, extents[d]);
  }
  if (overlapping && r_.chance(15)) strides[r_.below(static_cast<std::uint32_t>(strides.size()))] = r_.below(2);
  return strides;
}

std::uint32_t Generator::add_buffer(const std::string& name, Type t, const std::vector<std::uint64_t>& extents, ir::Access access,
                                    const std::vector<std::uint64_t>& strides) {
  const std::uint32_t mem = b_.buffer(name, t, static_cast<unsigned>(extents.size()), access, !strides.empty());
  ArgData a;
  a.is_buffer = true;
  std::uint64_t n = 1;
  for (std::uint64_t e : extents) n *= e;
  a.data.extents = extents;
  a.data.strides = strides;
  if (n != 0 && !strides.empty()) {
    n = 1;
    for (std::size_t d = 0; d < extents.size(); ++d) n += (extents[d] - 1) * strides[d];
  }
  const unsigned size = ir::byte_size(t);
  a.data.bytes.resize(n * size);
  for (std::uint64_t i = 0; i < n; ++i) {
    const std::uint64_t bits = interesting_bits(r_, t);
    for (unsigned k = 0; k < size; ++k) a.data.bytes[i * size + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
  case_.args.push_back(std::move(a));
  return mem;
}

void Generator::declare() {
  // Read anywhere. Some are as long as the grid has threads, so that threads side by side read elements side by side.
  for (Type t : elements_)
    if (r_.chance(45)) {
      std::vector<std::uint64_t> e{r_.chance(50) ? total_ + r_.below(40) : 1 + r_.below(70)};
      for (std::uint32_t more = 25; e.size() < ir::kMaxRank && r_.chance(more); more = 40)
        e.insert(e.begin(), 1 + r_.below(e.size() == 1 ? 5 : 3));
      if (faults_ && r_.chance(4)) e.back() = 0;
      const std::vector<std::uint64_t> strides = r_.chance(20) ? any_strides(e, true) : std::vector<std::uint64_t>{};
      inputs_.push_back({add_buffer("in_" + std::string(ir::name(t)), t, e, ir::Access::In, strides), t, e});
    }
  for (Type t : elements_)
    if (r_.chance(55) || (t == elements_.back() && own_.empty())) declare_own(t);
  for (int i = 0; i < 2; ++i) {
    const Type t = any_type();
    const std::uint32_t p = b_.scalar("s" + std::to_string(i), t);
    ArgData a;
    a.bits = interesting_bits(r_, t);
    case_.args.push_back(a);
    scalars_.push_back({p, t});
  }
  if (shape_.atomics && r_.chance(30)) declare_accumulators();
  if (shape_.barriers && r_.chance(60)) {
    exchange_.type = any_element();
    exchange_.extents = {threads_};
    if (r_.chance(25)) {
      exchange_.mem = b_.dynamic_shared("exchange", exchange_.type);
      // Sometimes there is room for a part of another element.
      case_.shared_bytes = threads_ * ir::byte_size(exchange_.type) + r_.below(ir::byte_size(exchange_.type));
    } else {
      exchange_.mem = b_.shared("exchange", exchange_.type, exchange_.extents);
    }
  }
  if (r_.chance(25)) {
    local_.type = any_element();
    local_.extents = {8};
    local_.mem = b_.local("local", local_.type, {8});
  }
  trace_ = add_buffer("trace", Type::U64, {total_}, ir::Access::InOut);
  trace32_ = b_.slot("trace32", Type::U32);
  trace64_ = b_.slot("trace64", Type::U64);
}

// One element a thread, touched by its owner only. In kernels that may fault some end early, and the last threads have none.
void Generator::declare_own(Type t) {
  Memory m{.type = t};
  const auto& g = case_.grid;
  const auto& b = case_.block;
  const std::uint32_t form = r_.below(8);
  m.layout = form == 0 || (form == 1 && g[2] * b[2] == 1) ? Layout::GlobalIds : form == 2 ? Layout::BlockAndThread : Layout::Linear;
  if (m.layout == Layout::Linear) m.extents = {total_};
  else if (m.layout == Layout::BlockAndThread) m.extents = {g[0] * g[1] * g[2], threads_};
  else m.extents = {g[1] * b[1], g[0] * b[0]};
  if (m.layout == Layout::GlobalIds && form == 0) m.extents.insert(m.extents.begin(), g[2] * b[2]);
  if (faults_ && r_.chance(50)) {
    std::uint64_t& last = m.extents[r_.below(static_cast<std::uint32_t>(m.extents.size()))];
    const std::uint64_t less = 1 + r_.below(r_.chance(60) ? 4 : 40);
    last = last > less ? last - less : last / 2;
    case_.may_fault = true;
  }
  m.mem = add_buffer("own_" + std::string(ir::name(t)), t, m.extents, ir::Access::InOut,
                     r_.chance(15) ? any_strides(m.extents, false) : std::vector<std::uint64_t>{});
  if (r_.chance(20)) {
    const std::size_t owner = case_.args.size() - 1;
    const std::vector<std::uint64_t> strides = case_.args[owner].data.strides;
    m.alias = b_.buffer("again_" + std::string(ir::name(t)), t, static_cast<unsigned>(m.extents.size()), ir::Access::In, !strides.empty());
    ArgData a;
    a.is_buffer = true;
    a.data.extents = m.extents;
    a.data.strides = strides;
    a.shares = owner;
    case_.kernel.in_place.emplace_back(static_cast<std::uint32_t>(owner), static_cast<std::uint32_t>(owner + 1));
    case_.args.push_back(std::move(a));
  }
  own_.push_back(std::move(m));
}

void Generator::declare_accumulators() {
  // Each takes one kind of commutative operation whose results nobody looks at: any order gives the same bits.
  static const std::vector<Opcode> kinds{Opcode::AtomicAdd, Opcode::AtomicMin, Opcode::AtomicMax,
                                         Opcode::AtomicAnd, Opcode::AtomicOr,  Opcode::AtomicXor};
  Accumulator a{kNone, any_atomic_integer(), r_.pick(kinds), false};
  if ((a.kind == Opcode::AtomicMin || a.kind == Opcode::AtomicMax) && r_.chance(40)) a.type = any_atomic_float();
  if (a.kind == Opcode::AtomicAdd && r_.chance(30)) {
    a.type = any_atomic_float();
    a.exact = true;  // small whole numbers only: float sums that no order changes
  }
  if (r_.chance(40) && shape_.barriers) {
    a.mem = b_.shared("acc", a.type, {8});
    shared_accumulators_.push_back(a);
    return;
  }
  a.mem = add_buffer("acc", a.type, {8}, ir::Access::InOut);
  for (std::uint64_t c = 0; c < 8 && a.exact; ++c) {
    const std::uint64_t bits = accumulator_start(a);
    for (unsigned k = 0; k < ir::byte_size(a.type); ++k)
      case_.args.back().data.bytes[c * ir::byte_size(a.type) + k] = static_cast<std::uint8_t>(bits >> (8 * k));
  }
  accumulators_.push_back(a);
}

std::uint64_t Generator::accumulator_start(const Accumulator& a) {
  if (!a.exact) return interesting_bits(r_, a.type);
  return a.type == Type::F32 ? std::bit_cast<std::uint32_t>(float(r_.below(50))) : std::bit_cast<std::uint64_t>(double(r_.below(50)));
}

ir::ValueId Generator::linear_in_block() {
  const ValueId x = b_.query(Opcode::ThreadId, 0);
  if (case_.block[1] * case_.block[2] == 1 && r_.chance(70)) return x;
  const ValueId y = b_.query(Opcode::ThreadId, 1), z = b_.query(Opcode::ThreadId, 2);
  const ValueId bx = b_.query(Opcode::BlockDim, 0), by = b_.query(Opcode::BlockDim, 1);
  return b_.binary(Opcode::Add, x, b_.binary(Opcode::Mul, bx, b_.binary(Opcode::Add, y, b_.binary(Opcode::Mul, by, z))));
}

ir::ValueId Generator::block_linear() {
  const ValueId x = b_.query(Opcode::BlockId, 0);
  if (case_.grid[1] * case_.grid[2] == 1) return x;
  const ValueId gx = b_.query(Opcode::GridDim, 0), gy = b_.query(Opcode::GridDim, 1);
  const ValueId plane = b_.binary(Opcode::Add, b_.query(Opcode::BlockId, 1), b_.binary(Opcode::Mul, gy, b_.query(Opcode::BlockId, 2)));
  return b_.binary(Opcode::Add, x, b_.binary(Opcode::Mul, gx, plane));
}

void Generator::head() {
  thread_ = linear_in_block();
  const bool flat = case_.block[1] * case_.block[2] * case_.grid[1] * case_.grid[2] == 1;
  const ValueId block = flat && r_.chance(60) ? kNone : block_linear();
  linear_ = block == kNone ? b_.query(Opcode::GlobalId, 0)
                           : b_.binary(Opcode::Add, b_.binary(Opcode::Mul, block, b_.const_u32(threads_)), thread_);
  for (Memory& m : own_) {
    if (m.layout == Layout::Linear) m.cell = {linear_};
    if (m.layout == Layout::BlockAndThread) m.cell = {block_linear(), thread_};
    if (m.layout != Layout::GlobalIds) continue;
    for (auto d = static_cast<unsigned>(m.extents.size()); d-- > 0;) m.cell.push_back(b_.query(Opcode::GlobalId, d));
  }
  requires_();
  // What threads hold differs from the start: most later values come from these.
  keep(linear_, false);
  for (const Memory& m : own_)
    if (r_.chance(80)) keep(b_.load(m.alias != kNone && r_.chance(50) ? m.alias : m.mem, m.cell), false);
  const int n = 1 + static_cast<int>(r_.below(2));
  for (int i = 0; i < n; ++i) {
    const Type t = r_.chance(15) ? Type::Bool : r_.pick(own_).type;
    slots_.push_back({b_.slot("v" + std::to_string(i), t), t});
    if (r_.chance(80)) b_.set(slots_.back().id, varying(t).id);
  }
  const Type t = any_integer();
  uniform_slots_.push_back({b_.slot("u", t), t});
  if (local_.mem != kNone) {
    const ir::OpId s = b_.for_(b_.const_u32(0), b_.const_u32(8), b_.const_u32(1));
    in_region(s, 0, [&] { b_.store(local_.mem, {s}, varying(local_.type).id); });
  }
  // Before anybody can return, so that no cell is ever read unwritten.
  if (exchange_.mem != kNone) b_.store(exchange_.mem, {thread_}, varying(exchange_.type).id);
  if (shared_accumulators_.empty()) return;
  for (const Accumulator& a : shared_accumulators_) {
    const ir::OpId s = b_.for_(thread_, b_.const_u32(8), b_.const_u32(threads_));
    in_region(s, 0, [&] { b_.store(a.mem, {s}, b_.constant(a.type, accumulator_start(a))); });
  }
  b_.barrier();
}

// True sentences about the launch, from which the bounds prover may conclude.
void Generator::requires_() {
  const auto say = [&](const Memory& m) {
    const unsigned d = r_.below(static_cast<std::uint32_t>(m.extents.size()));
    const Type t = r_.chance(60) ? Type::U32 : Type::U64;
    const std::uint64_t least =
        m.extents[d] - (r_.chance(50) ? 0 : r_.below(static_cast<std::uint32_t>(std::min<std::uint64_t>(m.extents[d], 4)) + 1));
    b_.require(b_.binary(Opcode::Ge, b_.extent(m.mem, d, t), b_.constant(t, least)), m.mem == trace_ ? "trace" : "cells");
  };
  if (r_.chance(50)) say({.mem = trace_, .type = Type::U64, .extents = {total_}});
  if (r_.chance(40)) say(r_.pick(own_));
  if (!inputs_.empty() && r_.chance(40)) say(r_.pick(inputs_));
}

}  // namespace kiln::fuzz
