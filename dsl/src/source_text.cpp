#include "source_text.h"

#include <charconv>

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

std::string slot_text(const ir::Kernel& k, std::uint32_t slot);
std::string list(const ir::Kernel& k, const ir::Op& op);

std::string source(const ir::Kernel& k, ir::ValueId id, bool outermost) {
  using enum ir::Opcode;
  const ir::Op& op = k.ops[id];
  const auto operand = [&](std::size_t i) { return source(k, op.operands[i], false); };
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
    case Get: return slot_text(k, op.index);
    case Load: return k.mems[op.index].name + "[" + list(k, op) + "]";
    case Not: return (op.type == ir::Type::Bool ? "!" : "~") + operand(0);
    case Neg: return "-" + operand(0);
    case Cast: return "cast<" + std::string(ir::name(op.type)) + ">(" + source(k, op.operands[0], true) + ")";
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
  return std::string(ir::info(op.code).mnemonic) + "(" + list(k, op) + ")";
}

std::string list(const ir::Kernel& k, const ir::Op& op) {
  std::string text;
  for (std::size_t i = 0; i < op.operands.size(); ++i) text += (i ? ", " : "") + source(k, op.operands[i], true);
  return text;
}

// What the right side of && and || computed under the left one is in a slot that is set once; other locals have no name.
std::string slot_text(const ir::Kernel& k, std::uint32_t slot) {
  const std::string& name = k.slots[slot].name;
  if (name != "and" && name != "or") return "a Var";
  for (const ir::Op& op : k.ops)
    if (op.code == ir::Opcode::Set && op.index == slot) return source(k, op.operands[0], false);
  return name;
}

}  // namespace

std::string source_text(const ir::Kernel& kernel, ir::ValueId condition) { return source(kernel, condition, true); }

}  // namespace kiln::dsl
