#include "source_text.h"

#include <charconv>
#include <optional>

#include "kiln/ir/decimal.h"

namespace kiln::dsl {
namespace {

std::string number(ir::Type type, std::uint64_t bits) {
  char text[64];
  std::to_chars_result end{};
  if (type == ir::Type::Bool) return bits ? "true" : "false";
  if (ir::is_real(type)) return ir::shortest_decimal(type, bits);
  if (ir::is_signed(type)) end = std::to_chars(text, text + sizeof text, ir::sign_extend(type, bits));
  else end = std::to_chars(text, text + sizeof text, bits);
  return {text, end.ptr};
}

// How many operations a text shows at most: each use of a value is written out, so that without a bound a short kernel could have a text
// of any length.
constexpr std::size_t kMost = 100;

// What the right side of && and || computed under the left one is in a slot that is set once; other locals have no name.
std::optional<ir::ValueId> meaning_of_slot(const ir::Kernel& k, std::uint32_t slot) {
  const std::string& name = k.slots[slot].name;
  if (name != "and" && name != "or") return std::nullopt;
  for (const ir::Op& op : k.ops)
    if (op.code == ir::Opcode::Set && op.index == slot) return op.operands[0];
  return std::nullopt;
}

// How many operations the text has, as far as there are no more than `room`; else more than that.
std::size_t operations(const ir::Kernel& k, ir::ValueId id, std::size_t room) {
  const ir::Op& op = k.ops[id];
  std::size_t n = 1;
  const auto add = [&](ir::ValueId operand) {
    if (n <= room) n += operations(k, operand, room - n);
  };
  if (op.code == ir::Opcode::Get) {
    if (const auto meant = meaning_of_slot(k, op.index)) add(*meant);
  }
  for (const ir::ValueId operand : op.operands) add(operand);
  return n;
}

// How much of the room each operand gets: all where everything fits, else the same share.
std::size_t room_inside(const ir::Kernel& k, ir::ValueId id, std::size_t room) {
  const std::size_t inside = room - 1, n = k.ops[id].operands.size();
  return n < 2 || operations(k, id, room) <= room ? inside : inside / n;
}

std::string list(const ir::Kernel& k, const ir::Op& op, std::size_t room);

// Of at most `room` operations; what there is no room for is "...".
std::string source(const ir::Kernel& k, ir::ValueId id, bool outermost, std::size_t room) {
  using enum ir::Opcode;
  if (room == 0) return "...";
  const ir::Op& op = k.ops[id];
  const std::size_t inner = room_inside(k, id, room);
  const auto operand = [&](std::size_t i) { return source(k, op.operands[i], false, inner); };
  const char* infix = nullptr;
  switch (op.code) {
    case Const: return number(op.type, op.imm);
    case Param: return k.params[op.index].name;
    case Extent: return k.mems[op.index].name + ".extent(" + std::to_string(op.attr) + ")";
    case Size: return k.mems[op.index].name + ".size()";
    case BlockDim: return std::string("block_dim().") + "xyz"[op.attr];
    case GridDim: return std::string("grid_dim().") + "xyz"[op.attr];
    case ThreadId: return std::string("thread_id().") + "xyz"[op.attr];
    case BlockId: return std::string("block_id().") + "xyz"[op.attr];
    case GlobalId: return std::string("global_id().") + "xyz"[op.attr];
    case Get: {
      const auto meant = meaning_of_slot(k, op.index);
      return meant ? source(k, *meant, false, inner) : "a Var";
    }
    case Load: return k.mems[op.index].name + "[" + list(k, op, inner) + "]";
    case Not: return (op.type == ir::Type::Bool ? "!" : "~") + operand(0);
    case Neg: return "-" + operand(0);
    case Cast: return "cast<" + std::string(ir::name(op.type)) + ">(" + source(k, op.operands[0], true, inner) + ")";
    case Add: infix = " + "; break;
    case Sub: infix = " - "; break;
    case Mul: infix = " * "; break;
    case Div: infix = " / "; break;
    case Rem: infix = " % "; break;
    case And: infix = op.type == ir::Type::Bool ? " && " : " & "; break;
    case Or: infix = op.type == ir::Type::Bool ? " || " : " | "; break;
    case Xor: infix = " ^ "; break;
    case Shl: infix = " << "; break;
    case Shr: infix = " >> "; break;
    case Eq: infix = " == "; break;
    case Ne: infix = " != "; break;
    case Lt: infix = " < "; break;
    case Le: infix = " <= "; break;
    case Gt: infix = " > "; break;
    case Ge: infix = " >= "; break;
    default: break;
  }
  if (infix) {
    const std::string text = operand(0) + infix + operand(1);
    return outermost ? text : "(" + text + ")";
  }
  return std::string(ir::info(op.code).mnemonic) + "(" + list(k, op, inner) + ")";
}

std::string list(const ir::Kernel& k, const ir::Op& op, std::size_t room) {
  std::string text;
  for (std::size_t i = 0; i < op.operands.size(); ++i) text += (i ? ", " : "") + source(k, op.operands[i], true, room);
  return text;
}

}  // namespace

std::string source_text(const ir::Kernel& kernel, ir::ValueId condition) { return source(kernel, condition, true, kMost); }

}  // namespace kiln::dsl
