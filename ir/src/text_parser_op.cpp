// Operations and regions of the text form.
#include "text_names.h"
#include "text_parser.h"

namespace kiln::ir::text {
namespace {

constexpr unsigned kMaxDepth = 200;
constexpr std::size_t kMaxOperations = 1'000'000;

}  // namespace

// Cases count too: each makes a region.
void Parser::count(const Token& at) {
  if (++operations_ > kMaxOperations) fail(at, "more than 1000000 operations");
}

OpId Parser::append(Op op, RegionId region) {
  const auto id = static_cast<OpId>(k_.ops.size());
  k_.ops.push_back(std::move(op));
  k_.regions[region].ops.push_back(id);
  return id;
}

// Operations up to and with the closing brace.
void Parser::block(RegionId region, unsigned depth) {
  if (depth > kMaxDepth) fail(token_, "more than 200 blocks inside each other");
  while (!at_block_end()) {
    if (token_.kind == Kind::End || token_.kind == Kind::Bad) expected("an operation or '}'");
    operation(region, depth);
    end_of_statement();
  }
  advance();
}

RegionId Parser::new_block(unsigned depth) {
  expect("{");
  const auto region = static_cast<RegionId>(k_.regions.size());
  k_.regions.emplace_back();
  block(region, depth + 1);
  return region;
}

// --- values -------------------------------------------------------------------------------------------------------------

ValueId Parser::value() {
  const Token t = take(Kind::Value, "a value such as %0");
  const auto it = values_.find(t.text);
  if (it == values_.end()) fail(t, "there is no value " + describe(t) + " above this line");
  return it->second;
}

void Parser::values(Op& op, unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (i > 0) expect(",");
    op.operands.push_back(value());
  }
}

void Parser::define(const Token& name, OpId id) {
  if (!values_.emplace(name.text, id).second) fail(name, describe(name) + " is defined twice");
}

Type Parser::operand_type(const Op& op, std::size_t i) const { return i < op.operands.size() ? k_.ops[op.operands[i]].type : Type::Void; }

// --- operations ---------------------------------------------------------------------------------------------------------

void Parser::operation(RegionId region, unsigned depth) {
  const Token start = token_;
  count(start);
  Token result;
  if (start.kind == Kind::Value) {
    result = start;
    advance();
    expect("=");
    if (token_.first_on_line) expected("an operation");
  }
  if (token_.kind != Kind::Word) expected("an operation");
  const Token mnemonic = token_;
  const std::optional<Opcode> code = parse_opcode(mnemonic.text);
  if (!code) fail(mnemonic, "there is no operation " + describe(mnemonic));
  advance();
  const Form form = info(*code).form;
  const bool named = result.kind == Kind::Value;
  if (named && form == Form::For) fail(start, "write 'for " + describe(result) + " = lo, hi, step'");
  if (named && !has_result(form)) fail(start, describe(mnemonic) + " has no result");
  Op op;
  op.code = *code;
  if (form == Form::For) return for_loop(region, mnemonic, depth);
  if (form == Form::If || form == Form::While || form == Form::Switch) return with_regions(std::move(op), region, mnemonic, depth);
  simple(op, mnemonic);
  op.loc = place(start);
  const OpId id = append(std::move(op), region);
  if (named) define(result, id);
}

void Parser::for_loop(RegionId region, const Token& at, unsigned depth) {
  Op op;
  op.code = Opcode::For;
  const Token variable = take(Kind::Value, "the loop's variable, such as %i");
  expect("=");
  values(op, 3);
  result_type(op, at);
  op.loc = place(at);
  const OpId id = append(std::move(op), region);
  define(variable, id);
  const RegionId body = new_block(depth);
  k_.ops[id].regions.push_back(body);
}

void Parser::with_regions(Op op, RegionId region, const Token& at, unsigned depth) {
  const Opcode code = op.code;
  if (code != Opcode::While) values(op, 1);
  op.loc = place(at);
  const OpId id = append(std::move(op), region);
  if (code == Opcode::Switch) return switch_regions(id, depth);
  const RegionId first = new_block(depth);
  k_.ops[id].regions.push_back(first);
  RegionId second;
  if (code == Opcode::While) {
    expect("do");
    second = new_block(depth);
  } else if (accept("else")) {
    second = new_block(depth);
  } else {
    second = static_cast<RegionId>(k_.regions.size());
    k_.regions.emplace_back();
  }
  k_.ops[id].regions.push_back(second);
}

void Parser::switch_regions(OpId id, unsigned depth) {
  const Type type = operand_type(k_.ops[id], 0);
  if (!is_integer(type)) fail(token_, "a switch needs an integer, not " + std::string(name(type)));
  expect("{");
  bool has_default = false;
  while (!at_block_end()) {
    const Token word = token_;
    if (word.kind != Kind::Word || (word.text != "case" && word.text != "default")) expected("'case', 'default' or '}'");
    if (has_default) fail(word, "default is the last part of a switch");
    count(word);
    advance();
    if (word.text == "default") {
      has_default = true;
    } else {
      const std::uint64_t bits = literal(type);
      k_.ops[id].cases.push_back(bits);
    }
    const RegionId part = new_block(depth);
    k_.ops[id].regions.push_back(part);
    end_of_statement();
  }
  advance();
  if (has_default) return;
  const auto part = static_cast<RegionId>(k_.regions.size());
  k_.regions.emplace_back();
  k_.ops[id].regions.push_back(part);
}

// Attributes, operands and the result type of an operation without regions.
void Parser::simple(Op& op, const Token& mnemonic) {
  const Form form = info(op.code).form;
  switch (form) {
    case Form::Const: {
      // The type stands behind the literal that it gives its meaning to, so the literal is read twice.
      const Lexer lexer = lexer_;
      const Token at = token_;
      if (at.first_on_line || (at.kind != Kind::Number && at.kind != Kind::Word)) expected("a constant");
      advance();
      expect(":");
      op.type = type();
      if (op.type == Type::Void) fail(at, "a constant has a type other than void");
      const Lexer lexer_after = lexer_;
      const Token after = token_;
      lexer_ = lexer;
      token_ = at;
      op.imm = literal(op.type);
      lexer_ = lexer_after;
      token_ = after;
      return;
    }
    case Form::Query: query(op); break;
    case Form::SlotGet: op.index = slot_label(); break;
    case Form::SlotSet:
      op.index = slot_label();
      expect(",");
      values(op, 1);
      return;
    case Form::Load:
    case Form::Store:
    case Form::Atomic:
    case Form::AtomicCas: access(op); break;
    case Form::WarpCombine: {
      expect(".");
      const Token t = take(Kind::Word, "add, mul, min, max, and, or or xor");
      const std::optional<Combine> how = parse_combine(t.text);
      if (!how) fail(t, "expected add, mul, min, max, and, or or xor, found " + describe(t));
      op.attr = static_cast<std::uint8_t>(*how);
      values(op, 1);
      break;
    }
    case Form::Check:
    case Form::Text:
    case Form::Require:
      for (bool needed = form != Form::Text; needed || (form != Form::Require && token_.kind == Kind::Value); needed = false) {
        values(op, 1);
        expect(",");
      }
      k_.texts.push_back(string());
      op.imm = k_.texts.size() - 1;
      if (form != Form::Require && accept("site")) op.site = static_cast<std::uint32_t>(unsigned_number(kNone - 1, "a site"));
      return;
    default: values(op, fixed_operands(form)); break;
  }
  if (has_result(form)) result_type(op, mnemonic);
}

void Parser::query(Op& op) {
  switch (query_operand(op.code)) {
    case QueryOperand::Param: op.index = param_label(); break;
    case QueryOperand::Mem: op.index = mem_label(); break;
    case QueryOperand::MemDimension:
      op.index = mem_label();
      expect(".");
      op.attr = static_cast<std::uint8_t>(unsigned_number(kMaxRank - 1, "a dimension"));
      break;
    case QueryOperand::Axis: {
      expect(".");
      const Token t = take(Kind::Word, "x, y or z");
      if (t.text != "x" && t.text != "y" && t.text != "z") fail(t, "expected x, y or z, found " + describe(t));
      op.attr = static_cast<std::uint8_t>(t.text[0] - 'x');
      break;
    }
    case QueryOperand::None: break;
  }
}

// memory[%i, %j], value ... [checked | proven] [site N]
void Parser::access(Op& op) {
  op.index = mem_label();
  expect("[");
  values(op, 1);
  while (accept(",")) values(op, 1);
  expect("]");
  for (unsigned i = 0; i < value_operands(info(op.code).form); ++i) {
    expect(",");
    values(op, 1);
  }
  if (accept("checked")) {
    op.bounds = Bounds::Checked;
  } else if (accept("proven")) {
    op.bounds = Bounds::Proven;
  }
  if (accept("site")) op.site = static_cast<std::uint32_t>(unsigned_number(kNone - 1, "a site"));
}

// ": type", or the only sensible one where it is left out.
void Parser::result_type(Op& op, const Token& mnemonic) {
  if (accept(":")) {
    op.type = type();
    return;
  }
  switch (info(op.code).form) {
    case Form::Query:
      if (op.code == Opcode::Param) {
        op.type = k_.params[op.index].type;
      } else {
        op.type = op.code == Opcode::Stride || info(op.code).effect == Effect::Time ? Type::U64 : Type::U32;
      }
      return;
    case Form::Compare: op.type = Type::Bool; return;
    case Form::Select: op.type = operand_type(op, 1); return;
    case Form::SlotGet: op.type = k_.slots[op.index].type; return;
    case Form::Load:
    case Form::Atomic:
    case Form::AtomicCas: op.type = k_.mems[op.index].element; return;
    case Form::BlockVote: op.type = op.code == Opcode::BarrierCount ? Type::U32 : Type::Bool; return;
    case Form::WarpVote: op.type = op.code == Opcode::Ballot ? Type::U32 : Type::Bool; return;
    case Form::Unary:
    case Form::Binary:
    case Form::Ternary:
    case Form::IntegerPower:
    case Form::Shuffle:
    case Form::WarpCombine:
    case Form::For: op.type = operand_type(op, 0); return;
    default: fail(mnemonic, describe(mnemonic) + " needs its result type: ': type'");
  }
}

}  // namespace kiln::ir::text
