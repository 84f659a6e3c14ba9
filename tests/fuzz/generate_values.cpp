// Expressions: every pure operation of the table, over operands that differ from lane to lane wherever that is allowed.
#include "fuzz/generator_impl.h"

namespace kiln::fuzz {

using ir::Form;
using ir::Opcode;
using ir::Type;
using ir::ValueId;

namespace {

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

const std::vector<Opcode> compares{Opcode::Lt, Opcode::Le, Opcode::Gt, Opcode::Ge, Opcode::Eq, Opcode::Ne};

}  // namespace

Generator::Value Generator::keep(ValueId id, bool uniform) {
  Value v{id, b_.type(id), uniform};
  scope_.push_back(v);
  return v;
}

Generator::Value Generator::leaf(Type t, bool uniform) {
  for (int attempt = 0; attempt < 6; ++attempt) {
    switch (r_.below(uniform ? 4 : 12)) {
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
        for (const Slot& s : uniform_slots_)
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
      case 5:
      case 6: {
        std::vector<Slot> fit;
        for (const Slot& s : slots_)
          if (s.type == t) fit.push_back(s);
        if (!fit.empty()) return {b_.get(r_.pick(fit).id), t, false};
        break;
      }
      default: {
        std::vector<Value> fit;
        for (const Value& v : scope_)
          if (v.type == t && !v.uniform) fit.push_back(v);
        if (!fit.empty()) return r_.pick(fit);
      }
    }
  }
  return {b_.constant(t, interesting_bits(r_, t)), t, true};
}

Generator::Value Generator::varying(Type t) {
  std::vector<Value> fit;
  for (const Value& v : scope_)
    if (v.type == t && !v.uniform) fit.push_back(v);
  if (!fit.empty() && r_.chance(60)) return r_.pick(fit);
  if (ir::is_bool(t)) return {divergent_bool(), t, false};
  const ValueId spread = b_.binary(Opcode::Mul, r_.chance(50) ? linear_ : b_.query(Opcode::LaneId),
                                   b_.const_u32(r_.pick(std::vector<std::uint32_t>{1, 3, 0x10001, 0x9e3779b1, 0xffffffff})));
  if (ir::is_float8(t)) return keep(b_.cast(t, varying(any_float()).id), false);
  const ValueId as = t == Type::U32 ? spread : b_.cast(t, spread);
  return keep(r_.chance(50) ? as : b_.binary(r_.chance(50) ? Opcode::Add : Opcode::Sub, as, leaf(t, false).id), false);
}

ValueId Generator::divergent_bool() {
  // One from before, which may lie behind a barrier, another branch or loop.
  if (r_.chance(20)) {
    std::vector<ValueId> fit;
    for (const Value& v : scope_)
      if (v.type == Type::Bool && !v.uniform) fit.push_back(v.id);
    if (!fit.empty()) return r_.pick(fit);
  }
  return keep(new_divergent_bool(), false).id;
}

// Lanes side by side against what is the same for all of them, and has no other use.
ValueId Generator::lanes_against_uniform() {
  const ValueId same = r_.chance(70) ? load_input(Type::U32, true).id : value(Type::U32, 1, true).id;
  return b_.binary(r_.pick(compares), b_.query(r_.chance(50) ? Opcode::ThreadId : Opcode::GlobalId, 0),
                   b_.binary(Opcode::Rem, same, b_.const_u32(threads_ + 1)));
}

ValueId Generator::new_divergent_bool() {
  const std::uint32_t live = threads_ < 32 ? threads_ : 32;
  switch (r_.below(8)) {
    case 0: return b_.binary(r_.pick(compares), b_.query(Opcode::LaneId), b_.const_u32(r_.below(live + 1)));
    case 1: return b_.binary(r_.pick(compares), thread_, b_.const_u32(r_.below(threads_ + 1)));
    case 2: return b_.cast(Type::Bool, b_.binary(Opcode::And, b_.query(Opcode::LaneId), b_.const_u32(1u << r_.below(5))));
    case 3: return b_.cast(Type::Bool, b_.binary(Opcode::And, varying(Type::U32).id, b_.const_u32(1u << r_.below(5))));
    case 4:
    case 5: {
      const Type t = any_number();
      const Value x = varying(t), y = r_.chance(50) ? varying(t) : value(t, 1);
      return b_.binary(r_.pick(compares), x.id, y.id);
    }
    case 6: return lanes_against_uniform();
    default: return value(Type::Bool, 2).id;
  }
}

ValueId Generator::no_nan(ValueId v) {
  const Type t = b_.type(v);
  if (!ir::is_float(t)) return v;
  return b_.select(b_.binary(Opcode::Eq, v, v), v, b_.constant(t, 0));
}

// Operations that become a long stretch of code (32 scalar divisions, a loop, a polynomial): one a kernel, not in every kernel.
bool Generator::too_dear(Opcode code, Type t) {
  const bool division = code == Opcode::Div || code == Opcode::Rem;
  const bool dear =
      (division && ir::is_integer(t)) || (code == Opcode::Rem && ir::is_float(t)) || (code == Opcode::MulHi && ir::bit_width(t) == 64);
  if (!dear) return false;
  const bool very = ir::is_float(t) || (division && ir::bit_width(t) == 64);
  if (code == Opcode::Rem && ir::is_float(t) && !shape_.math) return true;
  if (dear_ <= 0 || (very && !r_.chance(20))) return true;
  --dear_;
  return false;
}

Generator::Value Generator::math(Type t, int depth, bool uniform) {
  static const std::vector<Opcode> functions = [] {
    std::vector<Opcode> v;
    for (int i = 0; i < ir::kOpcodeCount; ++i) {
      if (ir::is_math_function(static_cast<Opcode>(i))) v.push_back(static_cast<Opcode>(i));
    }
    return v;
  }();
  --dear_;
  const Opcode code = r_.pick(functions);
  const Value a = value(t, depth - 1, uniform);
  const Form form = ir::info(code).form;
  if (form == Form::Unary) return keep(b_.unary(code, a.id), a.uniform);
  const Value c = value(form == Form::IntegerPower ? Type::I32 : t, depth - 1, uniform);
  return keep(b_.binary(code, a.id, c.id), a.uniform && c.uniform);
}

Generator::Value Generator::value(Type t, int depth, bool uniform) {
  if (depth <= 0 || r_.chance(20)) return !uniform && r_.chance(40) ? varying(t) : leaf(t, uniform);
  if (r_.chance(8)) return load_input(t, uniform);
  if (shape_.math && dear_ > 0 && ir::is_float(t) && r_.chance(2)) return math(t, depth, uniform);
  return operation(t, depth, uniform);
}

Generator::Value Generator::operation(Type t, int depth, bool uniform) {
  const std::uint8_t cls = ir::type_class(t);
  for (int attempt = 0; attempt < 20; ++attempt) {
    const PureOp& op = r_.pick(pure_ops());
    switch (op.form) {
      case Form::Compare: {
        if (t != Type::Bool) break;
        const Type s = any_type();
        if (!(op.types & ir::type_class(s))) break;
        const Value a = value(s, depth - 1, uniform), c = value(s, depth - 1, uniform);
        return keep(b_.binary(op.code, a.id, c.id), a.uniform && c.uniform);
      }
      case Form::Convert: {
        const Type s = any_type();
        if (s == t || !ir::converts(op.code, s, t)) break;
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
        if (!(op.types & cls) || too_dear(op.code, t)) break;
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

}  // namespace kiln::fuzz
