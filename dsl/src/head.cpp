#include "kiln/dsl/head.h"

#include <charconv>

#include "kiln/ir/decimal.h"

namespace kiln {
namespace {

// A head must stand in the body's own region, before anything but heads.
dsl::Recorder& head(const char* what, const dsl::Where& w) {
  dsl::Recorder& r = dsl::Recorder::current(w);
  if (!r.at_head()) r.fail(std::string(what) + " belongs to the head of the body, before the first ordinary operation", w);
  r.at(w);
  return r;
}

std::string number(ir::Type type, std::uint64_t bits) {
  char text[64];
  std::to_chars_result end{};
  if (type == ir::Type::Bool) return bits ? "true" : "false";
  if (ir::is_real(type)) return ir::shortest_decimal(type, bits);
  if (ir::is_signed(type)) end = std::to_chars(text, text + sizeof text, ir::sign_extend(type, bits));
  else end = std::to_chars(text, text + sizeof text, bits);
  return {text, end.ptr};
}

// The source of a condition again, from the IR: what a refused launch shows.
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
  std::string text(ir::info(op.code).mnemonic);
  text += "(";
  for (std::size_t i = 0; i < op.operands.size(); ++i) text += (i ? ", " : "") + source(k, op.operands[i], true);
  return text + ")";
}

}  // namespace

bool dsl::Recorder::at_head() const {
  if (scopes_.size() != 1 || scopes_[0].insertion != 0) return false;
  for (ir::OpId id : kernel_.regions[0].ops) {
    switch (kernel_.ops[id].code) {
      case ir::Opcode::ThreadId:
      case ir::Opcode::BlockId:
      case ir::Opcode::GlobalId:
      case ir::Opcode::LaneId:
      case ir::Opcode::WarpId: return false;
      case ir::Opcode::Require: break;
      default:
        if (!ir::is_pure(kernel_.ops[id].code)) return false;
    }
  }
  return true;
}

void block_size(Extent32 x, Extent32 y, Extent32 z, dsl::Where w) {
  dsl::Recorder& r = head("block_size", w);
  if (r.kernel().has_block_size() || r.kernel().max_threads != 0)
    r.fail("the block is declared already; a kernel has one block_size or one max_threads", w);
  if (x.value == 0 || y.value == 0 || z.value == 0) r.fail("block_size has an axis of 0; every axis is at least 1", w);
  r.kernel().block_size = {x.value, y.value, z.value};
}

void max_threads(Extent32 n, dsl::Where w) {
  dsl::Recorder& r = head("max_threads", w);
  if (r.kernel().has_block_size() || r.kernel().max_threads != 0)
    r.fail("the block is declared already; a kernel has one block_size or one max_threads", w);
  if (n.value == 0) r.fail("max_threads is 0; a block has at least one thread", w);
  r.kernel().max_threads = n.value;
}

void require(Use<bool> condition, std::string_view text) {
  dsl::Recorder& r = head("require", condition.where);
  r.here().require(condition.id, text.empty() ? source(r.kernel(), condition.id, true) : std::string(text));
}

void require(bool condition, std::string_view text, dsl::Where w) {
  dsl::Recorder& r = head("require", w);
  if (!condition) r.fail("this variant is refused by its require" + (text.empty() ? std::string() : ": " + std::string(text)), w);
}

void options(const Options& options, dsl::Where w) { head("options", w).kernel().options = options; }

void dsl::may_alias(std::uint32_t a, std::uint32_t b, const Where& w) {
  Recorder& r = head("in_place", w);
  if (a == b) r.fail("in_place names one parameter twice", w);
  r.kernel().in_place.emplace_back(a, b);
}

}  // namespace kiln
