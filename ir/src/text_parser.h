// The parser behind parse(): hand-written, one token of look-ahead, throws IrError at the first thing that is not well-formed.
#pragma once
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kiln/ir/diagnostic.h"
#include "kiln/ir/kernel.h"
#include "text_lexer.h"

namespace kiln::ir::text {

class Parser {
 public:
  // What has no place gets its own line, in a file of the name `own`; empty: it stays without one.
  explicit Parser(std::string_view text, std::string_view own = {}) : lexer_(text), own_(own) { advance(); }
  std::vector<Kernel> file();

 private:
  enum class LabelKind : std::uint8_t { Mem, Buffer, Param, Slot };  // Buffer: a memory and a parameter at once
  struct Label {
    LabelKind kind;
    std::uint32_t mem, param, slot;
  };

  // --- tokens (text_parser.cpp) ---
  [[noreturn]] void fail(const Token& at, const std::string& message) const;
  [[noreturn]] void expected(const std::string& what) const;  // at the current token
  void advance();
  bool here(std::string_view word) const;  // the current token is this word or punctuation, on this line
  bool at_block_end() const { return token_.kind == Kind::Punct && token_.text == "}"; }
  bool accept(std::string_view word);
  void expect(std::string_view word);
  Token take(Kind kind, const std::string& what);
  void end_of_statement();
  std::string string();
  std::string decode(const Token& token) const;
  std::uint64_t unsigned_number(std::uint64_t max, const std::string& what);
  std::uint64_t literal(Type type);
  Type type();
  Loc place(const Token& statement);  // "@file:line", or where there is none what own_place gives
  Loc own_place(const Token& statement) const;
  void name_own_places();
  Loc file_and_line();

  // --- declarations (text_parser.cpp) ---
  Kernel kernel();
  void declaration(const Token& word);
  void memory(const Token& word);
  void extents(Mem& mem);
  std::string declare(Label label);
  const Label& label(LabelKind wanted, const std::string& what);
  std::uint32_t mem_label();
  std::uint32_t param_label();
  std::uint32_t slot_label();

  // --- operations (text_parser_op.cpp) ---
  void block(RegionId region, unsigned depth);
  RegionId new_block(unsigned depth);
  void count(const Token& at);
  void operation(RegionId region, unsigned depth);
  void for_loop(RegionId region, const Token& at, unsigned depth);
  void with_regions(Op op, RegionId region, const Token& at, unsigned depth);
  void switch_regions(OpId id, unsigned depth);
  void simple(Op& op, const Token& mnemonic);
  void query(Op& op);
  void access(Op& op);
  void result_type(Op& op, const Token& mnemonic);
  OpId append(Op op, RegionId region);
  ValueId value();
  void values(Op& op, unsigned count);
  void define(const Token& name, OpId id);
  Type operand_type(const Op& op, std::size_t i) const;

  Lexer lexer_;
  std::string_view own_;
  Token token_;
  Kernel k_;
  bool in_kernel_ = false;
  std::unordered_map<std::string_view, Label> labels_;
  std::unordered_map<std::string_view, OpId> values_;
  std::size_t operations_ = 0;
};

}  // namespace kiln::ir::text
