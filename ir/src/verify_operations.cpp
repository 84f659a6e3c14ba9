#include <algorithm>
#include <array>
#include <set>

#include "kiln/ir/eval.h"
#include "kiln/ir/message.h"
#include "text_names.h"
#include "verify_impl.h"

namespace kiln::ir::verifier {
namespace {

std::string text(Type t) { return std::string(name(t)); }

// What an operation takes that does not take `t`, and what to write: the end of a refusal.
std::string needed(std::uint8_t types, Type t) {
  if (is_float8(t)) return "; such floats are stored, moved and converted only: cast<f32>(x) first";
  const struct {
    std::uint8_t type_class;
    const char* name;
  } classes[] = {{kBoolClass, "bool"}, {kIntegerClass, "integers"}, {kFloatClass, "floats"}};
  std::string takes;
  for (const auto& c : classes) {
    if ((types & c.type_class) != 0) takes += (takes.empty() ? "" : " and ") + std::string(c.name);
  }
  const char* const how = is_float(t)                    ? ": bit_cast its bits or cast its value to one"
                          : (types & kIntegerClass) != 0 ? ": cast<u32>(x)"
                                                         : ": cast<f32>(x)";
  return "; it takes " + takes + how;
}

// Where an operation stands, as far as it decides what is allowed.
struct Scope {
  bool root = false;
  bool loop = false;             // break and continue have a target
  bool while_condition = false;  // directly: the region must end in yield
};

class Operations {
 public:
  Operations(const Kernel& k, Stage stage, Findings& findings) : k_(k), stage_(stage), out_(findings), visible_(k.ops.size(), false) {}
  void run() { region(0, {.root = true}); }

 private:
  const Op& operand(const Op& op, std::size_t i) const { return k_.op(op.operands[i]); }
  Type type(const Op& op, std::size_t i) const { return operand(op, i).type; }

  void say(const std::string& message) { out_.at_op(id_, std::string(info(k_.op(id_).code).mnemonic) + message); }

  // --- regions and scopes -------------------------------------------------------------------------------------------------
  void region(RegionId r, Scope scope) {
    const std::vector<OpId>& ops = k_.regions[r].ops;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      id_ = ops[i];
      const Op& op = k_.op(id_);
      const bool terminator = op.code == Opcode::Yield || info(op.code).form == Form::Leave;
      if (terminator && i + 1 < ops.size()) say(" is followed by operations that nothing reaches");
      operation(op, scope);
      if (op.code == Opcode::Trap && (i + 1 == ops.size() || k_.op(ops[i + 1]).code != Opcode::Return))
        say(" has no return behind it; a thread that traps does not go on");
      if (op.code != Opcode::For) visible_[ops[i]] = true;
      below(ops[i], scope);
    }
    // A yield that is not the last was reported above.
    if (scope.while_condition && std::ranges::none_of(ops, [&](OpId id) { return k_.op(id).code == Opcode::Yield; })) {
      id_ = owner_;
      say(": its condition must end in yield");
    }
    for (const OpId id : ops) visible_[id] = false;
  }

  void below(OpId id, Scope scope) {
    const Op& op = k_.op(id);
    if (op.regions.empty()) return;
    scope.root = false;
    const bool for_loop = op.code == Opcode::For, while_loop = op.code == Opcode::While;
    if (for_loop) visible_[id] = true;
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      Scope inner = scope;
      inner.while_condition = while_loop && i == 0;
      if (for_loop || while_loop) inner.loop = !inner.while_condition;
      owner_ = id;
      region(op.regions[i], inner);
    }
    visible_[id] = !for_loop && has_result(info(op.code).form);
  }

  // --- one operation --------------------------------------------------------------------------------------------------------
  void operation(const Op& op, const Scope& scope) {
    const OpInfo& row = info(op.code);
    if (!operands_usable(op)) return;
    if (!result_usable(op, row)) return;
    switch (row.form) {
      case Form::Const:
        if ((op.imm & ~value_mask(op.type)) != 0) say(" has bits above the " + std::to_string(bit_width(op.type)) + " of " + text(op.type));
        break;
      case Form::Query: query(op); break;
      case Form::Unary:
      case Form::Binary:
      case Form::Ternary: arithmetic(op, row); break;
      case Form::IntegerPower:
        if (allowed(row, type(op, 0))) result_is(op, type(op, 0));
        if (type(op, 1) != Type::I32) say(" takes an exponent of i32, not " + text(type(op, 1)));
        break;
      case Form::Compare:
        if (op.type != Type::Bool) say(" gives bool, not " + text(op.type));
        if (same_operands(op, 0)) allowed(row, type(op, 0));
        break;
      case Form::Select:
        if (type(op, 0) != Type::Bool) say(" chooses by a bool, not by " + text(type(op, 0)));
        if (same_operands(op, 1) && allowed(row, type(op, 1))) result_is(op, type(op, 1));
        break;
      case Form::Convert: convert(op, row); break;
      case Form::SlotGet:
        if (slot_exists(op)) result_is(op, k_.slots[op.index].type);
        break;
      case Form::SlotSet:
        if (slot_exists(op) && type(op, 0) != k_.slots[op.index].type)
          say(" of " + text(type(op, 0)) + " to slot " + quoted(k_.slots[op.index].name) + ", which holds " +
              text(k_.slots[op.index].type));
        break;
      case Form::Load:
      case Form::Store:
      case Form::Atomic:
      case Form::AtomicCas: access(op, row); break;
      case Form::Barrier: break;
      case Form::BlockVote:
      case Form::WarpVote: {
        const bool counts = op.code == Opcode::BarrierCount || op.code == Opcode::Ballot;
        if (type(op, 0) != Type::Bool) say(" asks about a bool, not about " + text(type(op, 0)));
        result_is(op, counts ? Type::U32 : Type::Bool);
        break;
      }
      case Form::Shuffle:
        if (allowed(row, type(op, 0))) result_is(op, type(op, 0));
        if (type(op, 1) != Type::U32) say(" takes a lane or distance of u32, not " + text(type(op, 1)));
        break;
      case Form::WarpCombine: combine(op); break;
      case Form::If:
        if (type(op, 0) != Type::Bool) say(" needs a bool, not " + text(type(op, 0)));
        break;
      case Form::For: for_loop(op); break;
      case Form::While: break;
      case Form::Switch: switch_on(op); break;
      case Form::Yield:
        if (!scope.while_condition) say(" stands only at the end of a while's condition");
        if (type(op, 0) != Type::Bool) say(" needs a bool, not " + text(type(op, 0)));
        break;
      case Form::Leave:
        if (op.code != Opcode::Return && !scope.loop) say(" stands outside a loop's body");
        break;
      case Form::Check:
      case Form::Text: message(op); break;
      case Form::Require: require(op, scope); break;
    }
  }

  // Their number; each defined above, visible here, with a result of a type that can be computed with.
  bool operands_usable(const Op& op) {
    const Form form = info(op.code).form;
    std::size_t wanted = fixed_operands(form);
    if (is_access(op.code)) {
      if (op.index >= k_.mems.size()) return say(" names memory " + std::to_string(op.index) + ", which is not declared"), false;
      const std::size_t rank = k_.mems[op.index].rank;
      wanted = rank + value_operands(form);
      if (op.operands.size() != wanted && op.operands.size() >= value_operands(form)) {
        say(" names " + quoted(k_.mems[op.index].name) + " with " + std::to_string(op.operands.size() - value_operands(form)) +
            " coordinates; it has " + std::to_string(rank) + " dimensions");
        return false;
      }
    }
    if (form == Form::Check || form == Form::Text) {
      const std::size_t conditions = form == Form::Check ? 1 : 0;
      const std::size_t most = op.code == Opcode::Check ? kCheckValues : op.code == Opcode::LogText ? kLogValues : 0;
      if (op.operands.size() < conditions || op.operands.size() > conditions + most)
        return say(" has " + std::to_string(op.operands.size()) + " operands; it takes " + (conditions != 0 ? "a condition and " : "") +
                   (most == 0 ? "no values" : "at most " + std::to_string(most) + " values")),
               false;
      wanted = op.operands.size();
    }
    if (op.operands.size() != wanted)
      return say(" has " + std::to_string(op.operands.size()) + " operands, " + std::to_string(wanted) + " expected"), false;
    for (const ValueId v : op.operands) {
      const Op& definition = k_.op(v);
      const std::string what = std::string(info(definition.code).mnemonic);
      if (!has_result(info(definition.code).form)) return say(" uses the result of " + what + ", which has none"), false;
      if (!visible_[v])
        return say(" uses the value of operation " + std::to_string(v) + " (" + what +
                   "), which is not defined before it in this block or one around it"),
               false;
      // A definition that is itself refused; one finding is enough.
      if (definition.type == Type::Void) return false;
    }
    return true;
  }

  bool result_usable(const Op& op, const OpInfo& row) {
    if (!has_result(row.form)) {
      if (op.type == Type::Void) return true;
      return say(" has no result, but the type " + text(op.type)), false;
    }
    if (op.type == Type::Void) return say(" needs a result type"), false;
    return true;
  }

  void result_is(const Op& op, Type wanted) {
    if (op.type != wanted) say(" gives " + text(wanted) + ", not " + text(op.type));
  }

  bool allowed(const OpInfo& row, Type t) {
    if ((row.types & type_class(t)) != 0) return true;
    say(" is not defined for " + text(t) + needed(row.types, t));
    return false;
  }

  // The operands from `first` on have one type.
  bool same_operands(const Op& op, std::size_t first) {
    for (std::size_t i = first + 1; i < op.operands.size(); ++i) {
      if (type(op, i) != type(op, first)) {
        say(" of " + text(type(op, first)) + " and " + text(type(op, i)) + ": the types must be the same; cast one of them");
        return false;
      }
    }
    return true;
  }

  void arithmetic(const Op& op, const OpInfo& row) {
    if (!same_operands(op, 0) || !allowed(row, type(op, 0))) return;
    result_is(op, type(op, 0));
  }

  void convert(const Op& op, const OpInfo& row) {
    const Type from = type(op, 0);
    if (!allowed(row, from) || !allowed(row, op.type) || converts(op.code, from, op.type)) return;
    say(" from " + text(from) + " to " + text(op.type) +
        (op.code == Opcode::BitCast ? ": the widths differ; it takes a type of " + std::to_string(bit_width(from)) + " bits"
                                    : ": floats of 8 bits convert from and to floats only; cast<f32>(x) on the way"));
  }

  void query(const Op& op) {
    const bool u32 = op.type == Type::U32, u64 = op.type == Type::U64;
    switch (query_operand(op.code)) {
      case QueryOperand::Param:
        if (op.index >= k_.params.size() || k_.params[op.index].is_buffer) return say(" names no scalar parameter");
        return result_is(op, k_.params[op.index].type);
      case QueryOperand::Mem:
      case QueryOperand::MemDimension: {
        if (op.index >= k_.mems.size()) return say(" names memory " + std::to_string(op.index) + ", which is not declared");
        const Mem& m = k_.mems[op.index];
        if (op.code != Opcode::Size && op.attr >= m.rank)
          return say(" names dimension " + std::to_string(op.attr) + " of " + quoted(m.name) + ", which has " + std::to_string(m.rank));
        if (op.code != Opcode::Stride) break;
        if (!m.strided) return say(" names " + quoted(m.name) + ", which is not strided");
        return result_is(op, Type::U64);
      }
      case QueryOperand::Axis:
        if (op.attr > 2) return say(" names axis " + std::to_string(op.attr) + "; there are x, y and z");
        if (op.code == Opcode::GlobalId) break;
        return result_is(op, Type::U32);
      case QueryOperand::None: return result_is(op, info(op.code).effect == Effect::Time ? Type::U64 : Type::U32);
    }
    if (!u32 && !u64) say(" gives u32 or u64, not " + text(op.type));
  }

  bool slot_exists(const Op& op) {
    if (op.index < k_.slots.size()) return true;
    say(" names slot " + std::to_string(op.index) + ", which is not declared");
    return false;
  }

  void access(const Op& op, const OpInfo& row) {
    const Mem& m = k_.mems[op.index];
    const std::string which = " of " + quoted(m.name);
    for (std::size_t d = 0; d < m.rank; ++d) {
      if (!is_integer(type(op, d))) say(which + ": coordinate " + std::to_string(d) + " is " + text(type(op, d)) + ", not an integer");
    }
    for (std::size_t i = m.rank; i < op.operands.size(); ++i) {
      if (type(op, i) != m.element) say(which + ": the value is " + text(type(op, i)) + ", the elements are " + text(m.element));
    }
    if (has_result(row.form)) result_is(op, m.element);
    if (is_atomic(op.code)) {
      if ((row.types & type_class(m.element)) == 0) say(which + " is not defined for " + text(m.element) + needed(row.types, m.element));
      else if (bit_width(m.element) < 32)
        say(which + ": atomics work on elements of 32 and 64 bits, not on " + text(m.element) +
            "; keep the value in an element of 32 bits");
      if (m.space == Space::Local) say(which + ": atomics work on buffers and shared memory, not on a thread's own");
    }
    if (m.space != Space::Global) return;
    if (op.code == Opcode::Load && m.access == Access::Out) say(which + ", which is declared Out; a load needs In or InOut");
    if (op.code == Opcode::Store && m.access == Access::In) say(which + ", which is declared In; a store needs Out or InOut");
    if (is_atomic(op.code) && m.access != Access::InOut) say(which + ", which is not declared InOut; an atomic reads and writes");
  }

  void combine(const Op& op) {
    result_is(op, type(op, 0));
    if (op.attr >= kCombineCount) return say(" has no combine number " + std::to_string(op.attr));
    const auto how = static_cast<Combine>(op.attr);
    const bool bitwise = how == Combine::And || how == Combine::Or || how == Combine::Xor;
    const std::uint8_t classes = kIntegerClass | (bitwise ? kBoolClass : kFloatClass);
    if (how == Combine::Mul && is_half(type(op, 0))) return say(".mul is not there for " + text(type(op, 0)) + "; cast to f32 and back");
    if ((classes & type_class(type(op, 0))) == 0)
      say("." + std::string(name(how)) + " is not defined for " + text(type(op, 0)) + needed(classes, type(op, 0)));
  }

  void for_loop(const Op& op) {
    if (!same_operands(op, 0)) return;
    if (!is_integer(type(op, 0))) return say(" runs over integers, not over " + text(type(op, 0)));
    result_is(op, type(op, 0));
    const Op& step = operand(op, 2);
    if (stage_ == Stage::Recorded && step.code == Opcode::Const &&
        (is_signed(step.type) ? sign_extend(step.type, step.imm) <= 0 : step.imm == 0))
      say(" has the step " + std::to_string(sign_extend(step.type, step.imm)) + "; a step is above 0");
  }

  void switch_on(const Op& op) {
    const Type t = type(op, 0);
    if (!is_integer(t)) return say(" needs an integer, not " + text(t));
    std::set<std::uint64_t> seen;
    for (const std::uint64_t bits : op.cases) {
      if ((bits & ~value_mask(t)) != 0) {
        say(" has a case with bits above the " + std::to_string(bit_width(t)) + " of " + text(t));
      } else if (!seen.insert(bits).second) {
        say(" has case " + (is_signed(t) ? std::to_string(sign_extend(t, bits)) : std::to_string(bits)) + " twice");
      }
    }
  }

  // --- texts ----------------------------------------------------------------------------------------------------------------
  void message(const Op& op) {
    const std::size_t conditions = info(op.code).form == Form::Check ? 1 : 0;
    if (conditions != 0 && type(op, 0) != Type::Bool) return say(" needs a bool, not " + text(type(op, 0)));
    for (std::size_t i = 1; op.code == Opcode::Check && i < op.operands.size(); ++i) {
      if (is_float8(type(op, i))) say(" shows no " + text(type(op, i)) + needed(0, type(op, i)));
    }
    if (op.imm >= k_.texts.size()) return say(" names a text that does not exist");
    if (op.code == Opcode::Trap || op.code == Opcode::Assume) return;  // as it is
    std::vector<Type> types;
    for (std::size_t i = conditions; i < op.operands.size(); ++i) types.push_back(type(op, i));
    if (const std::string problem = describe_problem(k_.texts[op.imm], types); !problem.empty()) say(" " + problem);
  }

  // --- requires ---------------------------------------------------------------------------------------------------------------
  void require(const Op& op, const Scope& scope) {
    if (!scope.root) say(" stands in the body itself, under no condition or loop");
    if (op.imm >= k_.texts.size()) say(" names a text that does not exist");
    if (type(op, 0) != Type::Bool) return say(" needs a bool, not " + text(type(op, 0)));
    if (host_known_.empty()) host_known_.resize(k_.ops.size(), 0);
    std::vector<ValueId> todo{op.operands[0]};
    while (!todo.empty()) {
      const ValueId v = todo.back();
      todo.pop_back();
      if (v >= k_.ops.size() || host_known_[v] != 0) continue;
      host_known_[v] = 1;
      const Op& part = k_.op(v);
      if (!host_can(part)) {
        const std::string place = to_string(k_, part.loc);
        return say(" depends on " + std::string(info(part.code).mnemonic) + (place == "?" ? "" : " at " + place) +
                   ", which the host does not know at launch; use sizes, extents, scalars and constants");
      }
      todo.insert(todo.end(), part.operands.begin(), part.operands.end());
    }
  }

  bool host_can(const Op& op) const {
    switch (op.code) {
      case Opcode::Const:
      case Opcode::Param:
      case Opcode::BlockDim:
      case Opcode::GridDim: return true;
      case Opcode::Extent:
      case Opcode::Size:
      case Opcode::Stride: return op.index < k_.mems.size() && k_.mems[op.index].space == Space::Global;
      default: break;
    }
    const Form form = info(op.code).form;
    if (!is_pure(op.code) || form == Form::Query || op.operands.empty() || op.operands.size() != fixed_operands(form)) return false;
    const std::array<std::uint64_t, 3> zeros{};
    const Type operand_type = type(op, op.code == Opcode::Select ? 1 : 0);
    return evaluate(op.code, op.type, operand_type, std::span(zeros).first(op.operands.size())).has_value();
  }

  const Kernel& k_;
  Stage stage_;
  Findings& out_;
  std::vector<char> visible_;
  std::vector<char> host_known_;
  OpId id_ = 0;     // the operation under test
  OpId owner_ = 0;  // the operation whose region is walked
};

}  // namespace

void check_operations(const Kernel& k, Stage stage, Findings& findings) { Operations(k, stage, findings).run(); }

}  // namespace kiln::ir::verifier
