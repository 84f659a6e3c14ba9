// What printer, parser and verifier share about the shape of operations.
#pragma once
#include <string_view>

#include "kiln/ir/ops.h"

namespace kiln::ir {

inline constexpr unsigned kCombineCount = 7;

// What a Query names besides its result type.
enum class QueryOperand : std::uint8_t { None, Param, Mem, MemDimension, Axis };
constexpr QueryOperand query_operand(Opcode code) {
  switch (code) {
    case Opcode::Param: return QueryOperand::Param;
    case Opcode::Size: return QueryOperand::Mem;
    case Opcode::Extent:
    case Opcode::Stride: return QueryOperand::MemDimension;
    case Opcode::ThreadId:
    case Opcode::BlockId:
    case Opcode::BlockDim:
    case Opcode::GridDim:
    case Opcode::GlobalId: return QueryOperand::Axis;
    default: return QueryOperand::None;
  }
}

// Operations of this form give a value that others may name (For included: its induction value).
constexpr bool has_result(Form f) {
  switch (f) {
    case Form::SlotSet:
    case Form::Store:
    case Form::Barrier:
    case Form::If:
    case Form::While:
    case Form::Switch:
    case Form::Yield:
    case Form::Leave:
    case Form::Check:
    case Form::Text:
    case Form::Require: return false;
    default: return true;
  }
}

// Operands after the coordinates of an access.
constexpr unsigned value_operands(Form f) { return f == Form::Load ? 0 : f == Form::AtomicCas ? 2 : 1; }

// How many operands operations of this form have; accesses: without the coordinates.
constexpr unsigned fixed_operands(Form f) {
  switch (f) {
    case Form::Binary:
    case Form::IntegerPower:
    case Form::Compare:
    case Form::Shuffle: return 2;
    case Form::Ternary:
    case Form::Select:
    case Form::For: return 3;
    case Form::AtomicCas: return 2;
    case Form::Const:
    case Form::Query:
    case Form::SlotGet:
    case Form::Load:
    case Form::Barrier:
    case Form::While:
    case Form::Leave: return 0;
    default: return 1;
  }
}

// [A-Za-z_][A-Za-z0-9_]*
constexpr bool is_identifier_byte(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c >= '0' && c <= '9'); }
constexpr bool is_identifier(std::string_view s) {
  if (s.empty() || (s[0] >= '0' && s[0] <= '9')) return false;
  for (const char c : s) {
    if (!is_identifier_byte(c)) return false;
  }
  return true;
}

}  // namespace kiln::ir
