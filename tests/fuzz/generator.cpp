#include "fuzz/generator.h"

#include <bit>

#include "kiln/ir/builder.h"

namespace kiln::fuzz {

using ir::Builder;
using ir::Combine;
using ir::Form;
using ir::kNone;
using ir::Opcode;
using ir::RegionId;
using ir::Type;
using ir::ValueId;

std::uint64_t Random::next() {
  state_ += 0x9e3779b97f4a7c15ull;
  std::uint64_t z = state_;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

std::uint64_t interesting_bits(Random& r, Type t) {
  if (ir::is_bool(t)) return r.below(2);
  if (t == Type::F32) {
    static const std::vector<float> table{0.0f, -0.0f, 1.0f, -1.0f, 0.5f, 2.0f, 3.0f, -7.25f, 0.1f, 1e10f, -1e20f, 3e9f, 1e-40f, 2147483648.0f, 16777217.0f};
    switch (r.below(8)) {
      case 0: return 0x7f800000u | (r.below(2) << 31);
      case 1: return 0x7fc00000u;
      case 2: return r.below(0x00800000u) | (r.below(2) << 31);          // subnormal
      case 3: return static_cast<std::uint32_t>(r.next());                // anything
      case 4: return std::bit_cast<std::uint32_t>(static_cast<float>(static_cast<int>(r.below(200)) - 100) / 8.0f);
      default: return std::bit_cast<std::uint32_t>(r.pick(table));
    }
  }
  if (t == Type::F64) {
    static const std::vector<double> table{0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, -7.25, 0.1, 1e10, -1e200, 9.3e18, 1e-310, 4294967296.0};
    switch (r.below(8)) {
      case 0: return 0x7ff0000000000000ull | (static_cast<std::uint64_t>(r.below(2)) << 63);
      case 1: return 0x7ff8000000000000ull;
      case 2: return r.next() & 0x800fffffffffffffull;
      case 3: return r.next();
      case 4: return std::bit_cast<std::uint64_t>(static_cast<double>(static_cast<int>(r.below(200)) - 100) / 8.0);
      default: return std::bit_cast<std::uint64_t>(r.pick(table));
    }
  }
  const unsigned w = ir::bit_width(t);
  const std::uint64_t mask = ir::value_mask(t);
  switch (r.below(8)) {
    case 0: return r.next() & mask;
    case 1: return std::uint64_t{1} << (w - 1);                 // the signed minimum
    case 2: return mask >> 1;                                    // the signed maximum
    case 3: return mask;                                         // -1
    case 4: return (std::uint64_t{1} << r.below(w)) & mask;
    case 5: return (std::uint64_t{0} - r.below(40)) & mask;
    default: return r.below(40) & mask;
  }
}

namespace {

const std::vector<Type> kTypes{Type::Bool, Type::I32, Type::U32, Type::I64, Type::U64, Type::F32, Type::F64};
const std::vector<Type> kIntegers{Type::I32, Type::U32, Type::I64, Type::U64};
const std::vector<Type> kFloats{Type::F32, Type::F64};

struct PureOp {
  Opcode code;
  std::uint8_t types;
  Form form;
};
const std::vector<PureOp>& pure_ops() {
  static const std::vector<PureOp> list = [] {
    std::vector<PureOp> v;
    for (int i = 0; i < ir::kOpcodeCount; ++i) {
      const auto code = static_cast<Opcode>(i);
      const ir::OpInfo& o = ir::info(code);
      if (o.effect != ir::Effect::None || ir::is_math_function(code)) continue;
      if (o.form == Form::Unary || o.form == Form::Binary || o.form == Form::Ternary || o.form == Form::Compare || o.form == Form::Select ||
          o.form == Form::Convert)
        v.push_back({code, o.types, o.form});
    }
    return v;
  }();
  return list;
}

struct Value {
  ValueId id;
  Type type;
  bool uniform;  // the same in every thread of the block, whatever the verifier may think
};
struct SlotInfo {
  std::uint32_t id;
  Type type;
  bool uniform;
};

class Generator {
 public:
  Generator(std::uint64_t seed, const Shape& shape) : r_(seed), shape_(shape), b_(case_.kernel) {
    case_.kernel.name = "random" + std::to_string(seed);
    b_.loc = {b_.file("random.cpp"), 1};
  }

  Case run() {
    choose_launch();
    declare();
    head();
    budget_ = static_cast<int>(shape_.statements);
    statements(shape_.depth);
    results();
    case_.kernel.options.contraction = r_.chance(70);
    return std::move(case_);
  }

 private:
  struct Memory {
    std::uint32_t mem;
    Type type;
  };
  struct Accumulator {
    std::uint32_t mem;
    Type type;
    Opcode kind;
    bool exact;
  };

  // --- launch and declarations ----------------------------------------------------------------------------------
  void choose_launch() {
    static const std::vector<std::array<std::uint32_t, 3>> blocks{{32, 1, 1}, {64, 1, 1},  {1, 1, 1},  {7, 1, 1},  {33, 1, 1}, {45, 1, 1}, {96, 1, 1},
                                                                  {100, 1, 1}, {8, 4, 1}, {16, 4, 1}, {5, 7, 1}, {4, 4, 2},  {64, 2, 1}, {3, 5, 3}, {128, 1, 1}};
    case_.block = r_.pick(blocks);
    case_.grid = {1 + r_.below(3), r_.chance(30) ? 2u : 1u, r_.chance(10) ? 2u : 1u};
    threads_ = case_.block[0] * case_.block[1] * case_.block[2];
    total_ = threads_ * case_.grid[0] * case_.grid[1] * case_.grid[2];
    if (r_.chance(30)) case_.kernel.block_size = case_.block;
    else if (r_.chance(20)) case_.kernel.max_threads = threads_ + r_.below(20);
  }

  std::uint32_t add_buffer(const std::string& name, Type t, std::vector<std::uint64_t> extents, ir::Access access) {
    const std::uint32_t mem = b_.buffer(name, t, static_cast<unsigned>(extents.size()), access);
    ArgData a;
    a.is_buffer = true;
    std::uint64_t n = 1;
    for (std::uint64_t e : extents) n *= e;
    a.data.extents = extents;
    const unsigned size = ir::byte_size(t);
    a.data.bytes.resize(n * size);
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t bits = interesting_bits(r_, t);
      for (unsigned k = 0; k < size; ++k) a.data.bytes[i * size + k] = static_cast<std::uint8_t>(bits >> (8 * k));
    }
    case_.args.push_back(std::move(a));
    return mem;
  }

  void declare() {
    // Inputs of every type; read anywhere.
    for (Type t : {Type::I32, Type::U32, Type::I64, Type::U64, Type::F32, Type::F64})
      if (r_.chance(60)) {
        const bool two = r_.chance(25);
        std::vector<std::uint64_t> e = two ? std::vector<std::uint64_t>{1 + r_.below(9), 1 + r_.below(40)} : std::vector<std::uint64_t>{1 + r_.below(200)};
        inputs_.push_back({add_buffer("in_" + std::string(ir::name(t)), t, e, ir::Access::In), t});
      }
    // One element a thread, touched by its owner only.
    for (Type t : {Type::I32, Type::U32, Type::I64, Type::U64, Type::F32, Type::F64})
      if (r_.chance(70) || t == Type::U32) own_.push_back({add_buffer("own_" + std::string(ir::name(t)), t, {total_}, ir::Access::InOut), t});
    for (int i = 0; i < 3; ++i) {
      const Type t = r_.pick(kTypes);
      const std::uint32_t p = b_.scalar("s" + std::to_string(i), t);
      ArgData a;
      a.bits = interesting_bits(r_, t);
      case_.args.push_back(a);
      scalars_.push_back({p, t});
    }
    if (shape_.atomics && r_.chance(50)) {
      // Each accumulator takes one kind of commutative operation whose results nobody looks at: any order gives the same bits.
      static const std::vector<Opcode> kinds{Opcode::AtomicAdd, Opcode::AtomicMin, Opcode::AtomicMax, Opcode::AtomicAnd, Opcode::AtomicOr, Opcode::AtomicXor};
      const int n = 1 + static_cast<int>(r_.below(2));
      for (int i = 0; i < n; ++i) {
        Accumulator a{kNone, r_.pick(kIntegers), r_.pick(kinds), false};
        if ((a.kind == Opcode::AtomicMin || a.kind == Opcode::AtomicMax) && r_.chance(40)) a.type = r_.pick(kFloats);
        if (a.kind == Opcode::AtomicAdd && r_.chance(30)) {
          a.type = r_.pick(kFloats);
          a.exact = true;  // small whole numbers only: float sums that no order changes
        }
        const std::string name = "acc" + std::to_string(i);
        if (r_.chance(40) && shape_.barriers) {
          a.mem = b_.shared(name, a.type, {8});
          shared_accumulators_.push_back(a);
        } else {
          a.mem = add_buffer(name, a.type, {8}, ir::Access::InOut);
          for (std::uint64_t c = 0; c < 8 && a.exact; ++c) {
            const std::uint64_t bits = accumulator_start(a);
            for (unsigned k = 0; k < ir::byte_size(a.type); ++k)
              case_.args.back().data.bytes[c * ir::byte_size(a.type) + k] = static_cast<std::uint8_t>(bits >> (8 * k));
          }
          accumulators_.push_back(a);
        }
      }
    }
    if (shape_.barriers && r_.chance(60)) {
      const Type t = r_.pick(kTypes) == Type::Bool ? Type::U32 : r_.pick(std::vector<Type>{Type::I32, Type::U32, Type::F32, Type::U64, Type::F64});
      exchange_ = b_.shared("exchange", t, {threads_});
      exchange_type_ = t;
    }
    if (r_.chance(30)) local_ = b_.local("local", Type::U32, {8});
  }

  void head() {
    linear_ = linear_global();
    const int n = 2 + static_cast<int>(r_.below(5));
    for (int i = 0; i < n; ++i) {
      const Type t = r_.chance(15) ? Type::Bool : r_.pick(own_).type;  // types that results() can show
      slots_.push_back({b_.slot("v" + std::to_string(i), t), t, false});
      if (r_.chance(80)) b_.set(slots_.back().id, value(t, 2).id);
    }
    for (int i = 0; i < 2; ++i) {
      const Type t = r_.pick(kIntegers);
      uniform_slots_.push_back({b_.slot("u" + std::to_string(i), t), t, true});
    }
    if (local_ != kNone)
      for (std::uint32_t i = 0; i < 8; ++i) b_.store(local_, {b_.const_u32(i)}, value(Type::U32, 1).id);
    if (exchange_ != kNone) {
      // Before anybody can return, so that no cell is ever read unwritten.
      const ValueId t = thread_linear();
      b_.store(exchange_, {t}, value(exchange_type_, 1).id);
    }
    if (!shared_accumulators_.empty()) {
      const ValueId t = thread_linear();
      for (const Accumulator& a : shared_accumulators_) {
        const ir::OpId s = b_.for_(t, b_.const_u32(8), b_.const_u32(threads_));
        in(b_.kernel().op(s).regions[0], [&] { b_.store(a.mem, {s}, b_.constant(a.type, accumulator_start(a))); });
      }
      b_.barrier();
    }
    if (r_.chance(30)) {
      const auto& m = r_.pick(own_);
      const ValueId cells = b_.size(m.mem, Type::U64);
      b_.require(b_.binary(Opcode::Ge, cells, b_.const_u64(total_)), "own cells");
    }
  }
  std::uint64_t accumulator_start(const Accumulator& a) {
    if (!a.exact) return interesting_bits(r_, a.type);
    return a.type == Type::F32 ? std::bit_cast<std::uint32_t>(float(r_.below(50))) : std::bit_cast<std::uint64_t>(double(r_.below(50)));
  }

  ValueId thread_linear() {
    const ValueId x = b_.query(Opcode::ThreadId, 0), y = b_.query(Opcode::ThreadId, 1), z = b_.query(Opcode::ThreadId, 2);
    const ValueId bx = b_.query(Opcode::BlockDim, 0), by = b_.query(Opcode::BlockDim, 1);
    return b_.binary(Opcode::Add, x, b_.binary(Opcode::Mul, bx, b_.binary(Opcode::Add, y, b_.binary(Opcode::Mul, by, z))));
  }
  ValueId linear_global() {
    const ValueId gx = b_.query(Opcode::GridDim, 0), gy = b_.query(Opcode::GridDim, 1);
    const ValueId block = b_.binary(
        Opcode::Add, b_.query(Opcode::BlockId, 0),
        b_.binary(Opcode::Mul, gx, b_.binary(Opcode::Add, b_.query(Opcode::BlockId, 1), b_.binary(Opcode::Mul, gy, b_.query(Opcode::BlockId, 2)))));
    return b_.binary(Opcode::Add, b_.binary(Opcode::Mul, block, b_.const_u32(threads_)), thread_linear());
  }

  template <class F>
  void in(RegionId region, F&& f) {
    const RegionId before = b_.region();
    const std::size_t depth = scope_.size();
    b_.set_region(region);
    f();
    b_.set_region(before);
    scope_.resize(depth);
  }

  // --- expressions ------------------------------------------------------------------------------------------------
  Value keep(ValueId id, bool uniform) {
    Value v{id, b_.type(id), uniform};
    scope_.push_back(v);
    return v;
  }

  Value leaf(Type t, bool uniform) {
    for (int attempt = 0; attempt < 6; ++attempt) {
      switch (r_.below(uniform ? 4 : 8)) {
        case 0: return {b_.constant(t, interesting_bits(r_, t)), t, true};
        case 1:
          for (const auto& [p, pt] : scalars_)
            if (pt == t) return {b_.param(p), t, true};
          break;
        case 2:
          if (t == Type::U32) {
            static const std::vector<Opcode> q{Opcode::BlockId, Opcode::BlockDim, Opcode::GridDim};
            return {b_.query(r_.pick(q), r_.below(3)), t, true};
          }
          break;
        case 3:
          for (const SlotInfo& s : uniform_slots_)
            if (s.type == t && r_.chance(60)) return {b_.get(s.id), t, true};
          if ((t == Type::U32 || t == Type::U64) && !inputs_.empty()) {
            const auto& m = r_.pick(inputs_);
            return {r_.chance(50) ? b_.extent(m.mem, 0, t) : b_.size(m.mem, t), t, true};
          }
          break;
        case 4:
          if (t == Type::U32) {
            switch (r_.below(4)) {
              case 0: return {b_.query(Opcode::ThreadId, r_.below(3)), t, false};
              case 1: return {b_.query(Opcode::LaneId), t, false};
              case 2: return {b_.query(Opcode::GlobalId, r_.below(3)), t, false};
              default: return {b_.query(Opcode::WarpId), t, false};
            }
          }
          if (t == Type::U64) return {b_.query(Opcode::GlobalId, r_.below(3), Type::U64), t, false};
          break;
        case 5: {
          std::vector<SlotInfo> fit;
          for (const SlotInfo& s : slots_)
            if (s.type == t) fit.push_back(s);
          if (!fit.empty()) return {b_.get(r_.pick(fit).id), t, false};
          break;
        }
        default: {
          std::vector<Value> fit;
          for (const Value& v : scope_)
            if (v.type == t) fit.push_back(v);
          if (!fit.empty()) return r_.pick(fit);
        }
      }
    }
    return {b_.constant(t, interesting_bits(r_, t)), t, true};
  }

  // A value without NaN, where its sign or payload would show.
  ValueId no_nan(ValueId v) {
    const Type t = b_.type(v);
    if (!ir::is_float(t)) return v;
    return b_.select(b_.binary(Opcode::Eq, v, v), v, b_.constant(t, 0));
  }

  Value value(Type t, int depth, bool uniform = false) {
    if (depth <= 0 || r_.chance(20)) return leaf(t, uniform);
    if (r_.chance(12)) return load_input(t, depth, uniform);
    if (shape_.math && t == Type::F32 && r_.chance(2)) {
      static const std::vector<Opcode> m{Opcode::Exp, Opcode::Log, Opcode::Sin, Opcode::Cos, Opcode::Tanh, Opcode::Rsqrt, Opcode::Pow};
      const Opcode code = r_.pick(m);
      const Value a = value(t, depth - 1, uniform);
      if (code == Opcode::Pow) {
        const Value c = value(t, depth - 1, uniform);
        return keep(b_.binary(code, a.id, c.id), a.uniform && c.uniform);
      }
      return keep(b_.unary(code, a.id), a.uniform);
    }
    for (int attempt = 0; attempt < 20; ++attempt) {
      const PureOp& op = r_.pick(pure_ops());
      const std::uint8_t cls = ir::type_class(t);
      switch (op.form) {
        case Form::Compare: {
          if (t != Type::Bool) break;
          Type s = r_.pick(kTypes);
          if (!(op.types & ir::type_class(s))) break;
          const Value a = value(s, depth - 1, uniform), c = value(s, depth - 1, uniform);
          return keep(b_.binary(op.code, a.id, c.id), a.uniform && c.uniform);
        }
        case Form::Convert: {
          Type s = r_.pick(kTypes);
          if (s == t || !(op.types & cls) || !(op.types & ir::type_class(s))) break;
          if (op.code == Opcode::BitCast && ir::bit_width(s) != ir::bit_width(t)) break;
          const Value a = value(s, depth - 1, uniform);
          if (op.code == Opcode::BitCast) return keep(b_.bit_cast(t, no_nan(a.id)), a.uniform);
          return keep(b_.cast(t, a.id), a.uniform);
        }
        case Form::Select: {
          if (!(op.types & cls)) break;
          const Value c = value(Type::Bool, depth - 1, uniform), x = value(t, depth - 1, uniform), y = value(t, depth - 1, uniform);
          return keep(b_.select(c.id, x.id, y.id), c.uniform && x.uniform && y.uniform);
        }
        case Form::Unary: {
          if (!(op.types & cls)) break;
          const Value a = value(t, depth - 1, uniform);
          return keep(b_.unary(op.code, a.id), a.uniform);
        }
        case Form::Binary: {
          if (!(op.types & cls)) break;
          if (op.code == Opcode::Rem && ir::is_float(t) && (!shape_.math || !r_.chance(20))) break;  // a loop each: rarely
          const Value a = value(t, depth - 1, uniform), c = value(t, depth - 1, uniform);
          return keep(b_.binary(op.code, a.id, op.code == Opcode::CopySign ? no_nan(c.id) : c.id), a.uniform && c.uniform);
        }
        case Form::Ternary: {
          if (!(op.types & cls)) break;
          const Value a = value(t, depth - 1, uniform), c = value(t, depth - 1, uniform), d = value(t, depth - 1, uniform);
          return keep(b_.fma(a.id, c.id, d.id), a.uniform && c.uniform && d.uniform);
        }
        default: break;
      }
    }
    return leaf(t, uniform);
  }

  // An index below the extent, or (in kernels that may fault) anything.
  ValueId index_into(std::uint32_t mem, unsigned dimension, int depth, bool uniform) {
    if (!uniform && shape_.faults && r_.chance(4)) {
      case_.may_fault = true;
      return value(r_.pick(kIntegers), depth - 1).id;
    }
    const Type t = r_.chance(70) ? Type::U32 : Type::U64;
    const ValueId raw = value(t, depth - 1, uniform).id;
    return b_.binary(Opcode::Rem, raw, b_.extent(mem, dimension, t));
  }

  Value load_input(Type t, int depth, bool uniform) {
    std::vector<std::uint32_t> fit;
    for (const auto& m : inputs_)
      if (m.type == t) fit.push_back(m.mem);
    if (fit.empty()) return leaf(t, uniform);
    const std::uint32_t mem = r_.pick(fit);
    std::vector<ValueId> c;
    const unsigned rank = case_.kernel.mems[mem].rank;
    for (unsigned d = 0; d < rank; ++d) c.push_back(index_into(mem, d, depth, uniform));
    return keep(b_.load(mem, std::move(c)), uniform);
  }

  // --- statements -------------------------------------------------------------------------------------------------
  struct Context {
    bool uniform_control = true;   // every not-returned thread of the block is here
    bool in_loop = false;
    bool may_leave_loop = false;   // a break or continue may be put here
  };

  void statements(std::uint32_t depth) {
    Context c;
    block(depth, c, static_cast<int>(shape_.statements));
  }

  // Emits up to `count` statements; returns true when the last one leaves (nothing may follow).
  bool block(std::uint32_t depth, const Context& c, int count) {
    for (int i = 0; i < count && budget_ > 0; ++i) {
      --budget_;
      ++b_.loc.line;
      if (statement(depth, c)) return true;
    }
    return false;
  }

  bool statement(std::uint32_t depth, const Context& c) {
    switch (r_.below(24)) {
      case 0: case 1: case 2: case 3: assign(); return false;
      case 4: case 5: own_access(); return false;
      case 6: case 7: case 8:
        if (depth > 0) conditional(depth, c);
        return false;
      case 9: case 10:
        if (depth > 0) counted_loop(depth, c);
        return false;
      case 11:
        if (depth > 0) while_loop(depth, c);
        return false;
      case 12:
        if (depth > 0) switch_statement(depth, c);
        return false;
      case 13: case 14: case 15:
        if (shape_.warp_ops) warp_statement();
        return false;
      case 16: case 17:
        if (shape_.barriers && c.uniform_control) barrier_statement();
        return false;
      case 18:
        if (shape_.atomics) atomic_statement();
        return false;
      case 19: local_access(); return false;
      case 20:
        if (c.uniform_control) uniform_assign();
        return false;
      case 21: case 22:
        if (c.may_leave_loop && r_.chance(60)) {
          leave_guarded(r_.chance(50) ? Opcode::Break : Opcode::Continue);
          return false;
        }
        return false;
      default:
        if (r_.chance(15) && depth < shape_.depth) leave_guarded(Opcode::Return);
        return false;
    }
  }

  void leave_guarded(Opcode code) {
    const ir::OpId s = b_.if_(value(Type::Bool, 2).id);
    in(b_.kernel().op(s).regions[0], [&] {
      if (r_.chance(50)) assign();
      b_.leave(code);
    });
  }

  void assign() {
    const SlotInfo& s = r_.pick(slots_);
    b_.set(s.id, value(s.type, 3).id);
  }
  void uniform_assign() {
    const SlotInfo& s = r_.pick(uniform_slots_);
    b_.set(s.id, value(s.type, 2, true).id);
  }

  void own_access() {
    const auto& m = r_.pick(own_);
    switch (r_.below(4)) {
      case 0: keep(b_.load(m.mem, {linear_}), false); break;
      case 1:
        if (shape_.atomics) {  // alone on its cell: results are known
          static const std::vector<Opcode> on_floats{Opcode::AtomicAdd, Opcode::AtomicMin, Opcode::AtomicMax, Opcode::AtomicExchange};
          static const std::vector<Opcode> on_integers{Opcode::AtomicAdd, Opcode::AtomicSub, Opcode::AtomicMin, Opcode::AtomicMax,
                                             Opcode::AtomicAnd, Opcode::AtomicOr, Opcode::AtomicXor, Opcode::AtomicExchange};
          if (ir::is_float(m.type)) keep(b_.atomic(r_.pick(on_floats), m.mem, {linear_}, value(m.type, 2).id), false);
          else if (r_.chance(20)) {
            const ValueId expected = value(m.type, 1).id, desired = value(m.type, 1).id;
            keep(b_.atomic_cas(m.mem, {linear_}, expected, desired), false);
          } else keep(b_.atomic(r_.pick(on_integers), m.mem, {linear_}, value(m.type, 2).id), false);
          break;
        }
        [[fallthrough]];
      default: b_.store(m.mem, {linear_}, value(m.type, 3).id);
    }
  }

  void local_access() {
    if (local_ == kNone) return assign();
    const ValueId i = b_.binary(Opcode::And, value(Type::U32, 2).id, b_.const_u32(7));
    if (r_.chance(50)) b_.store(local_, {i}, value(Type::U32, 2).id);
    else keep(b_.load(local_, {i}), false);
  }

  void conditional(std::uint32_t depth, const Context& c) {
    const bool uniform = r_.chance(35);
    const Value cond = value(Type::Bool, 3, uniform);
    Context inner = c;
    inner.uniform_control = c.uniform_control && uniform;
    const ir::OpId s = b_.if_(cond.id);
    in(b_.kernel().op(s).regions[0], [&] { block(depth - 1, inner, 1 + static_cast<int>(r_.below(5))); });
    if (r_.chance(50)) in(b_.kernel().op(s).regions[1], [&] { block(depth - 1, inner, 1 + static_cast<int>(r_.below(4))); });
  }

  void counted_loop(std::uint32_t depth, const Context& c) {
    const Type t = r_.pick(kIntegers);
    const bool uniform = r_.chance(60);
    ValueId lo, hi, step;
    const ValueId seven = b_.constant(t, 7);
    switch (r_.below(4)) {
      case 0:  // near the end of the type: must not wrap
        hi = b_.constant(t, ir::is_signed(t) ? ir::value_mask(t) >> 1 : ir::value_mask(t));
        lo = b_.binary(Opcode::Sub, hi, b_.binary(Opcode::And, value(t, 1, uniform).id, seven));
        step = b_.constant(t, 1 + r_.below(4));
        break;
      case 1:
        lo = b_.constant(t, r_.below(3));
        hi = b_.constant(t, r_.below(7));
        step = b_.constant(t, 1);
        break;
      default:
        lo = b_.binary(Opcode::And, value(t, 1, uniform).id, seven);
        hi = b_.binary(Opcode::And, value(t, 1, uniform).id, seven);
        step = r_.chance(70) ? b_.constant(t, 1 + r_.below(3)) : b_.binary(Opcode::And, value(t, 1, uniform).id, b_.constant(t, 3));
    }
    Context inner;
    inner.in_loop = true;
    inner.may_leave_loop = r_.chance(50);
    inner.uniform_control = c.uniform_control && uniform && !inner.may_leave_loop;
    const ir::OpId s = b_.for_(lo, hi, step);
    in(b_.kernel().op(s).regions[0], [&] {
      keep(s, uniform);
      block(depth - 1, inner, 1 + static_cast<int>(r_.below(4)));
    });
  }

  void while_loop(std::uint32_t depth, const Context& c) {
    const bool uniform = r_.chance(40) && c.uniform_control;
    const std::uint32_t counter = b_.slot("n" + std::to_string(loop_count_++), Type::U32);
    b_.set(counter, b_.const_u32(0));
    const ir::OpId s = b_.while_();
    Context inner;
    inner.in_loop = true;
    inner.may_leave_loop = r_.chance(50);
    inner.uniform_control = c.uniform_control && uniform && !inner.may_leave_loop;
    const std::uint32_t limit = 1 + r_.below(5);
    in(b_.kernel().op(s).regions[0], [&] {
      const ValueId n = b_.get(counter);
      b_.set(counter, b_.binary(Opcode::Add, n, b_.const_u32(1)));  // counted in the condition: continue cannot skip it
      const ValueId go = value(Type::Bool, 2, uniform).id;
      if (shape_.warp_ops && !uniform && r_.chance(20)) warp_statement();
      const ValueId more = b_.binary(Opcode::Lt, n, b_.const_u32(limit));
      b_.yield(b_.binary(Opcode::And, more, r_.chance(50) ? go : b_.const_bool(true)));
    });
    in(b_.kernel().op(s).regions[1], [&] { block(depth - 1, inner, 1 + static_cast<int>(r_.below(4))); });
  }

  void switch_statement(std::uint32_t depth, const Context& c) {
    const Type t = r_.pick(kIntegers);
    const bool uniform = r_.chance(40);
    const ValueId v = b_.binary(Opcode::And, value(t, 2, uniform).id, b_.constant(t, 7));
    std::vector<std::uint64_t> cases;
    const std::uint32_t n = r_.below(4);
    for (std::uint32_t i = 0; i < n; ++i) cases.push_back(i * 2 + (i == 2 ? 1 : 0));
    Context inner = c;
    inner.uniform_control = c.uniform_control && uniform;
    const ir::OpId s = b_.switch_(v, cases);
    const std::size_t regions = b_.kernel().op(s).regions.size();
    for (std::size_t i = 0; i < regions; ++i)
      in(b_.kernel().op(s).regions[i], [&] { block(depth - 1, inner, static_cast<int>(r_.below(4))); });
  }

  void warp_statement() {
    static const std::vector<Opcode> shuffles{Opcode::ShuffleIdx, Opcode::ShuffleUp, Opcode::ShuffleDown, Opcode::ShuffleXor};
    ValueId result;
    switch (r_.below(5)) {
      case 0: case 1: {
        const Value v = value(r_.pick(kTypes), 2);
        const ValueId lane = r_.chance(60) ? b_.const_u32(r_.below(r_.chance(90) ? 32 : 70)) : value(Type::U32, 2).id;
        result = b_.shuffle(r_.pick(shuffles), v.id, lane);
        break;
      }
      case 2: {
        static const std::vector<Opcode> votes{Opcode::VoteAny, Opcode::VoteAll, Opcode::Ballot};
        result = b_.warp_vote(r_.pick(votes), value(Type::Bool, 2).id);
        break;
      }
      default: {
        static const std::vector<Opcode> kinds{Opcode::WarpReduce, Opcode::WarpScan, Opcode::WarpScanExclusive};
        const auto how = static_cast<Combine>(r_.below(7));
        const bool bits = how == Combine::And || how == Combine::Or || how == Combine::Xor;
        const Type t = bits ? (r_.chance(20) ? Type::Bool : r_.pick(kIntegers)) : r_.chance(50) ? r_.pick(kIntegers) : r_.pick(kFloats);
        result = b_.warp_combine(r_.pick(kinds), how, value(t, 2).id);
      }
    }
    if (r_.chance(10)) b_.warp_sync();
    keep(result, false);
    // Let it be seen.
    for (const SlotInfo& s : slots_)
      if (s.type == b_.type(result) && r_.chance(60)) {
        b_.set(s.id, result);
        break;
      }
  }

  void barrier_statement() {
    switch (r_.below(6)) {
      case 0: b_.barrier(); return;
      case 1: {
        static const std::vector<Opcode> votes{Opcode::BarrierAny, Opcode::BarrierAll, Opcode::BarrierCount};
        keep(b_.block_vote(r_.pick(votes), value(Type::Bool, 2).id), true);
        return;
      }
      case 2: keep(b_.block_uniform(value(r_.pick(kTypes), 2, true).id), true); return;
      default: break;
    }
    if (exchange_ == kNone) return b_.barrier();
    // One round of talk through shared memory; cells that nobody wrote since the start are never read.
    const ValueId t = thread_linear();
    b_.store(exchange_, {t}, value(exchange_type_, 2).id);
    b_.barrier();
    const ValueId other = b_.binary(Opcode::Rem, value(Type::U32, 2).id, b_.const_u32(threads_));
    const ValueId got = b_.load(exchange_, {other});
    b_.barrier();
    keep(got, false);
    for (const SlotInfo& s : slots_)
      if (s.type == exchange_type_) {
        b_.set(s.id, got);
        break;
      }
  }

  void atomic_statement() {
    const bool shared = !shared_accumulators_.empty() && (accumulators_.empty() || r_.chance(50));
    const auto& list = shared ? shared_accumulators_ : accumulators_;
    if (list.empty()) return assign();
    const Accumulator& a = r_.pick(list);
    const ValueId cell = b_.binary(Opcode::And, value(Type::U32, 1).id, b_.const_u32(7));
    Opcode kind = a.kind;
    if (kind == Opcode::AtomicAdd && ir::is_integer(a.type) && r_.chance(30)) kind = Opcode::AtomicSub;
    const ValueId v = a.exact ? b_.cast(a.type, b_.binary(Opcode::And, value(Type::U32, 2).id, b_.const_u32(15))) : value(a.type, 2).id;
    b_.atomic(kind, a.mem, {cell}, v);
  }

  // At the end everything that was computed is written down, so that nothing is dead.
  void results() {
    ++b_.loc.line;
    for (const SlotInfo& s : slots_) {
      for (const auto& m : own_)
        if (m.type == s.type || (s.type == Type::Bool && m.type == Type::U32)) {
          const ValueId v = b_.get(s.id);
          const ValueId as = s.type == Type::Bool ? b_.cast(Type::U32, v) : v;
          if (ir::is_float(s.type)) b_.store(m.mem, {linear_}, as);
          else b_.store(m.mem, {linear_}, b_.binary(Opcode::Add, b_.binary(Opcode::Mul, b_.load(m.mem, {linear_}), b_.constant(m.type, 31)), as));
          break;
        }
    }
    if (!shared_accumulators_.empty()) {
      b_.barrier();
      for (const auto& a : shared_accumulators_) {
        for (const auto& m : own_) {
          if (m.type != a.type) continue;
          b_.store(m.mem, {linear_}, b_.load(a.mem, {b_.binary(Opcode::And, linear_, b_.const_u32(7))}));
          break;
        }
      }
    }
  }

  Random r_;
  Shape shape_;
  Case case_;
  Builder b_;
  std::uint32_t threads_ = 1, total_ = 1;
  int budget_ = 0, loop_count_ = 0;
  std::vector<Memory> inputs_, own_;
  std::vector<std::pair<std::uint32_t, Type>> scalars_;
  std::vector<Accumulator> accumulators_, shared_accumulators_;
  std::uint32_t exchange_ = kNone, local_ = kNone;
  Type exchange_type_ = Type::U32;
  ValueId linear_ = kNone;
  std::vector<SlotInfo> slots_, uniform_slots_;
  std::vector<Value> scope_;
};

}  // namespace

Case generate(std::uint64_t seed, const Shape& shape) { return Generator(seed, shape).run(); }

}  // namespace kiln::fuzz
