// Statements: assignments, branches and loops, and how lanes leave them.
#include "fuzz/generator_impl.h"

namespace kiln::fuzz {

using ir::kNone;
using ir::Opcode;
using ir::Type;
using ir::ValueId;

// Emits up to `count` statements.
void Generator::block(std::uint32_t depth, const Context& c, int count) {
  for (int i = 0; i < count && budget_ > 0; ++i) {
    --budget_;
    ++b_.loc.line;
    statement(depth, c);
  }
}

void Generator::statement(std::uint32_t depth, const Context& c) {
  // clang-format off
  enum class Kind : std::uint8_t { Assign, Arithmetic, Own, Input, Guarded, If, For, While, Switch, Warp, Barrier, Atomic, Local, Uniform, Check, Log, Assume, Clock, Trap, LeaveLoop, Return };
  // clang-format on
  static const std::vector<Kind> mix = [] {
    const std::pair<Kind, std::size_t> weights[] = {
        {Kind::Assign, 4}, {Kind::Arithmetic, 7}, {Kind::Own, 4},    {Kind::Input, 5},     {Kind::Guarded, 4}, {Kind::If, 8},
        {Kind::For, 9},    {Kind::While, 2},      {Kind::Switch, 2}, {Kind::Warp, 12},     {Kind::Barrier, 7}, {Kind::Atomic, 2},
        {Kind::Local, 2},  {Kind::Uniform, 1},    {Kind::Check, 4},  {Kind::LeaveLoop, 2}, {Kind::Return, 1},  {Kind::Log, 3},
        {Kind::Assume, 1}, {Kind::Clock, 1},      {Kind::Trap, 1}};
    std::vector<Kind> v;
    for (const auto& [kind, weight] : weights) v.insert(v.end(), weight, kind);
    return v;
  }();
  Kind kind = r_.pick(mix);
  const bool holds_others = kind == Kind::If || kind == Kind::For || kind == Kind::While || kind == Kind::Switch;
  const bool impossible =
      (holds_others && depth == 0) || (kind == Kind::Warp && !shape_.warp_ops) || (kind == Kind::Atomic && !shape_.atomics) ||
      (kind == Kind::Barrier && (!shape_.barriers || !c.uniform_control)) || (kind == Kind::Uniform && !c.uniform_control) ||
      (kind == Kind::Check && !faults_) || (kind == Kind::Log && log_count_ == 3) ||
      (kind == Kind::LeaveLoop && (!c.may_leave_loop || (c.loop_is_uniform && !c.uniform_control)));
  if (impossible) kind = Kind::Arithmetic;
  switch (kind) {
    case Kind::Assign: assign(); break;
    case Kind::Arithmetic: arithmetic(); break;
    case Kind::Own: own_statement(); break;
    case Kind::Input: input_statement(); break;
    case Kind::Guarded: guarded_statement(); break;
    case Kind::If: conditional(depth, c); break;
    case Kind::For: counted_loop(depth, c); break;
    case Kind::While: while_loop(depth, c); break;
    case Kind::Switch: switch_statement(depth, c); break;
    case Kind::Warp: warp_statement(); break;
    case Kind::Barrier: barrier_statement(); break;
    case Kind::Atomic: atomic_statement(); break;
    case Kind::Local: local_statement(); break;
    case Kind::Uniform: uniform_assign(); break;
    case Kind::Check: check_statement(); break;
    case Kind::Log: log_statement(); break;
    case Kind::Assume: assume_statement(); break;
    case Kind::Clock: clock_statement(); break;
    case Kind::Trap: trap_statement(); break;
    case Kind::LeaveLoop: leave_guarded(r_.chance(60) ? Opcode::Break : Opcode::Continue, c.loop_is_uniform); break;
    case Kind::Return: leave_guarded(Opcode::Return, false); break;
  }
}

// No floats: the payload of a NaN is left open, and the report has bits.
void Generator::check_statement() {
  case_.may_fault = true;
  std::vector<ValueId> values;
  std::string text = "it";
  for (std::uint32_t n = r_.below(ir::kCheckValues + 1); n > 0; --n) {
    values.push_back(value(r_.chance(20) ? Type::Bool : any_integer(), 1).id);
    text += " {}";
  }
  const ValueId rare = b_.binary(Opcode::Ne, b_.binary(Opcode::And, varying(Type::U32).id, b_.const_u32(15)), b_.const_u32(r_.below(16)));
  b_.check(r_.chance(70) ? rare : r_.chance(80) ? divergent_bool() : value(Type::Bool, 1, true).id, text, values);
}

// Each with words of its own, so that what is not said is missed. Mostly by few threads.
void Generator::log_statement() {
  std::string text = "log " + std::to_string(log_count_++);
  std::vector<ValueId> values;
  for (std::uint32_t n = r_.below(ir::kLogValues + 1); n > 0; --n) {
    const Type t = r_.chance(20) ? Type::Bool : any_type();
    const ValueId v = value(t, 1, r_.chance(20)).id;
    values.push_back(ir::is_float(t) ? no_nan(v) : v);
    text += ir::is_integer(t) && r_.chance(30) ? " {:04x}" : " {}";
  }
  if (r_.chance(30)) return b_.log_text(text, values);
  const ValueId few = b_.binary(Opcode::Eq, b_.binary(Opcode::And, linear_, b_.const_u32(7)), b_.const_u32(r_.below(8)));
  in_region(b_.if_(r_.chance(60) ? few : divergent_bool()), 0, [&] { b_.log_text(text, values); });
}

// What holds, in a form that the passes do not see through, and what is built on it. Where faults are looked for, what may not hold too.
void Generator::assume_statement() {
  const Type t = any_integer();
  const ValueId seven = b_.constant(t, 7), low = b_.binary(Opcode::And, varying(t).id, seven);
  const ValueId holds = b_.binary(Opcode::Le, low, seven);
  if (faults_ && r_.chance(30)) {
    case_.may_fault = true;
    b_.assume(divergent_bool(), "it");
  } else {
    b_.assume(r_.chance(50) ? holds : b_.binary(Opcode::And, holds, b_.unary(Opcode::Not, b_.binary(Opcode::Gt, low, seven))), "it");
  }
  fold(b_.select(holds, low, seven));
}

// Times themselves differ; that a later one is not less is the same everywhere.
void Generator::clock_statement() {
  const Opcode code = r_.chance(50) ? Opcode::Clock : Opcode::GlobalTime;
  const ValueId before = b_.query(code, 0, Type::U64);
  if (r_.chance(50)) assign();
  fold(b_.binary(Opcode::Ge, b_.query(code, 0, Type::U64), before));
}

// One that no thread comes to, for what is compiled around it.
void Generator::trap_statement() {
  const Type t = any_integer();
  const ValueId never = b_.binary(Opcode::Gt, b_.binary(Opcode::And, varying(t).id, b_.constant(t, 7)), b_.constant(t, 7));
  in_region(b_.if_(never), 0, [&] { b_.trap("never"); });
}

void Generator::leave_guarded(Opcode code, bool uniform) {
  const ValueId cond = uniform ? value(Type::Bool, 2, true).id : r_.chance(70) ? divergent_bool() : value(Type::Bool, 2).id;
  const bool bare = r_.chance(40);  // a guard with nothing else under it, which backends know
  if (code == Opcode::Return && bare) write_trace();
  in_region(b_.if_(cond), 0, [&] {
    if (!bare && r_.chance(40)) assign();
    if (!bare && code == Opcode::Return) write_trace();
    b_.leave(code);
  });
}

// Single operations, seen as they are.
void Generator::arithmetic() {
  for (std::uint32_t n = 2 + r_.below(3); n > 0; --n) fold(operation(r_.chance(30) ? Type::Bool : any_type(), 1, false).id);
}

void Generator::assign() {
  const Slot& s = r_.pick(slots_);
  const Value v = value(s.type, r_.chance(70) ? 2 : 3);
  b_.set(s.id, v.id);
  fold(v.id);
}

void Generator::uniform_assign() {
  const Slot& s = r_.pick(uniform_slots_);
  const Value v = value(s.type, 2, true);
  b_.set(s.id, v.id);
  fold(v.id);
}

void Generator::conditional(std::uint32_t depth, const Context& c) {
  const bool uniform = r_.chance(35);
  const ValueId cond = uniform ? value(Type::Bool, 2, true).id : r_.chance(75) ? divergent_bool() : value(Type::Bool, 2).id;
  Context inner = c;
  inner.uniform_control = c.uniform_control && uniform;
  const ir::OpId s = b_.if_(cond);
  in_region(s, 0, [&] { block(depth - 1, inner, 1 + static_cast<int>(r_.below(3))); });
  if (r_.chance(50)) in_region(s, 1, [&] { block(depth - 1, inner, 1 + static_cast<int>(r_.below(3))); });
  if (shape_.warp_ops && !uniform && r_.chance(30)) fold(b_.warp_vote(Opcode::Ballot, b_.const_bool(true)));  // who met behind it
}

// The body, with a way out where there may be one and something after it that tells who is still there.
void Generator::loop_body(std::uint32_t depth, const Context& inner) {
  if (depth > 1 && r_.chance(45)) counted_loop(depth - 1, inner);  // few statements would seldom nest loops
  else block(depth - 1, inner, 1 + static_cast<int>(r_.below(2)));
  if (inner.may_leave_loop && (!inner.loop_is_uniform || inner.uniform_control)) {
    leave_guarded(r_.chance(65) ? Opcode::Break : Opcode::Continue, inner.loop_is_uniform);
    if (shape_.warp_ops) fold(b_.warp_vote(Opcode::Ballot, b_.const_bool(true)));
  }
  block(depth - 1, inner, static_cast<int>(r_.below(3)));
}

void Generator::counted_loop(std::uint32_t depth, const Context& c) {
  const Type t = r_.chance(50) ? Type::U32 : any_integer();
  const bool uniform = r_.chance(55);
  const Memory* over = nullptr;  // a memory whose elements it visits
  ValueId lo = kNone, hi = kNone, step = kNone;
  switch (r_.below(5)) {
    case 0:  // near the end of the type: must not wrap
      hi = b_.constant(t, ir::is_signed(t) ? ir::value_mask(t) >> 1 : ir::value_mask(t));
      lo = b_.binary(Opcode::Sub, hi, b_.binary(Opcode::And, value(t, 1, uniform).id, b_.constant(t, 3)));
      step = b_.constant(t, 1 + r_.below(4));
      break;
    case 1:
      lo = b_.constant(t, r_.below(2));
      hi = b_.constant(t, 1 + r_.below(4));
      step = b_.constant(t, 1);
      break;
    case 2:
      for (const Memory& m : inputs_)
        if (m.extents.size() == 1 && m.extents[0] > 0) over = &m;
      if (over && (t == Type::U32 || t == Type::U64)) {
        lo = b_.constant(t, r_.below(2));
        hi = b_.binary(Opcode::Min, b_.extent(over->mem, 0, t), b_.constant(t, 2 + r_.below(3)));
        step = b_.constant(t, 1 + r_.below(2));
        break;
      }
      over = nullptr;
      [[fallthrough]];
    default:
      lo = b_.binary(Opcode::And, uniform ? value(t, 1, true).id : varying(t).id, b_.constant(t, 3));
      hi = b_.binary(Opcode::And, uniform ? value(t, 1, true).id : varying(t).id, b_.constant(t, 7));
      step = r_.chance(70) ? b_.constant(t, 1 + r_.below(3)) : b_.binary(Opcode::And, value(t, 1, uniform).id, b_.constant(t, 3));
  }
  Context inner;
  inner.may_leave_loop = r_.chance(70);
  inner.loop_is_uniform = inner.may_leave_loop && c.uniform_control && uniform && r_.chance(40);
  inner.uniform_control = c.uniform_control && uniform && (!inner.may_leave_loop || inner.loop_is_uniform);
  const ir::OpId s = b_.for_(lo, hi, step);
  in_region(s, 0, [&] {
    keep(s, uniform);
    if (over) {
      ValueId i = s;
      if (faults_ && r_.chance(40)) {
        case_.may_fault = true;
        i = b_.binary(r_.chance(50) ? Opcode::Sub : Opcode::Add, s, b_.constant(t, 1));
      }
      fold(keep(b_.load(over->mem, {i}), uniform).id);
    }
    loop_body(depth, inner);
  });
}

void Generator::while_loop(std::uint32_t depth, const Context& c) {
  const bool uniform = r_.chance(40) && c.uniform_control;
  const std::uint32_t counter = b_.slot("n" + std::to_string(loop_count_++), Type::U32);
  b_.set(counter, b_.const_u32(0));
  const ir::OpId s = b_.while_();
  Context inner;
  inner.may_leave_loop = r_.chance(70);
  inner.loop_is_uniform = inner.may_leave_loop && uniform && r_.chance(40);
  inner.uniform_control = c.uniform_control && uniform && (!inner.may_leave_loop || inner.loop_is_uniform);
  const std::uint32_t limit = 1 + r_.below(4);
  in_region(s, 0, [&] {
    const ValueId n = b_.get(counter);
    b_.set(counter, b_.binary(Opcode::Add, n, b_.const_u32(1)));  // counted in the condition: continue cannot skip it
    const ValueId go = uniform ? value(Type::Bool, 2, true).id : divergent_bool();
    if (shape_.warp_ops && !uniform && r_.chance(30)) warp_statement();
    const ValueId more = b_.binary(Opcode::Lt, n, b_.const_u32(limit));
    b_.yield(b_.binary(Opcode::And, more, r_.chance(50) ? go : b_.const_bool(true)));
  });
  in_region(s, 1, [&] { loop_body(depth, inner); });
}

void Generator::switch_statement(std::uint32_t depth, const Context& c) {
  const Type t = any_integer();
  const bool uniform = r_.chance(40);
  const ValueId v = b_.binary(Opcode::And, uniform ? value(t, 2, true).id : varying(t).id, b_.constant(t, r_.chance(50) ? 3 : 7));
  std::vector<std::uint64_t> cases;
  const std::uint32_t n = r_.below(4);
  for (std::uint32_t i = 0; i < n; ++i) cases.push_back(i * 2 + (i == 2 ? 1 : 0));
  Context inner = c;
  inner.uniform_control = c.uniform_control && uniform;
  const ir::OpId s = b_.switch_(v, cases);
  const auto regions = static_cast<unsigned>(b_.kernel().op(s).regions.size());
  for (unsigned i = 0; i < regions; ++i) in_region(s, i, [&] { block(depth - 1, inner, static_cast<int>(r_.below(3))); });
}

}  // namespace kiln::fuzz
