// The parser's state. Private to the parser: ptx_parser.cpp has the module's level, ptx_parse_body.cpp functions' bodies,
// ptx_parse_variable.cpp declarations of variables and constant expressions.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "simcuda/ptx_ast.h"
#include "simcuda/ptx_lexer.h"

namespace kiln::simcuda::ptx {

struct SyntaxError {
  unsigned line = 0;
  std::string text;
};

class Parser {
 public:
  Parser(ModuleDecl& module, std::vector<Diagnostic>& errors) : m_(module), errors_(errors), lexer_(module.text) { advance(); }
  void module();  // throws SyntaxError

 private:
  // Tokens.
  void advance() {
    last_line_ = t_.line;
    t_ = lexer_.next();
  }
  bool punct(char c) const { return t_.punct() == c; }
  bool dotted(std::string_view name) const { return t_.kind == Token::Kind::Dotted && t_.text == name; }
  bool take(char c);
  void expect(char c);
  std::string_view identifier();
  [[noreturn]] void syntax_error() const;
  void error(unsigned line, std::string text) { errors_.push_back({line, std::move(text), false}); }
  std::uint64_t unsigned_number();
  std::uint32_t number32();  // what the assembler keeps in 32 bits
  // While one lives, what is being read is one level deeper. Texts may nest only so deep: whatever handles them recurses.
  class Level {
   public:
    explicit Level(Parser& parser) : parser_(parser) { parser_.deeper(); }
    ~Level() { --parser_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    Parser& parser_;
  };
  void deeper();

  // Module level.
  void version();
  void target();
  void directive();
  void file();
  void section();
  void alias();
  void function(bool entry);
  void function_attributes(FunctionDecl& f);
  void entry_params(const FunctionDecl& f);  // checks them
  std::vector<std::unique_ptr<Variable>> params();
  std::array<std::uint32_t, 3> three(std::string_view directive);

  // Variables (ptx_parse_variable.cpp).
  // What follows the space: alignment, type, name, dimensions.
  std::unique_ptr<Variable> declarator(Space space, bool is_param, std::uint64_t* element_bytes = nullptr);
  void dimensions(Variable& v);  // "[4][2]": as often as its bytes
  void initialiser(Variable& v);
  void initialiser_item(Variable& v, std::uint64_t& at, unsigned element);
  void variables(Space space);  // of the module or of a body
  std::int64_t constant(int level = 0);
  std::int64_t constant_primary();
  void add_module_variable(std::unique_ptr<Variable> v);

  // Bodies (ptx_parse_body.cpp).
  void body(FunctionDecl& f);
  void statement();
  void registers();
  void loc();
  void branch_targets(std::string_view label);
  void call_prototype(std::string_view label);
  void instruction();
  Operand operand();
  Operand simple_operand();
  Operand address();
  Operand named();
  std::optional<std::uint32_t> find_register(std::string_view name);
  const Variable* find_variable(std::string_view name) const;

  struct Range {
    Type type = Type::None;
    std::uint32_t count = 0;
  };
  struct Scope {
    std::uint32_t id = 0;
    std::unordered_map<std::string_view, std::uint32_t> registers;  // those named so far -> index
    std::unordered_map<std::string_view, Range> ranges;             // by stem; their registers are made when they are named
    std::unordered_map<std::string_view, const Variable*> variables;
  };

  ModuleDecl& m_;
  std::vector<Diagnostic>& errors_;
  Lexer lexer_;
  Token t_;
  unsigned last_line_ = 1;
  unsigned depth_ = 0;
  FunctionDecl* f_ = nullptr;  // whose body is being read
  std::vector<Scope> scopes_;
  std::uint32_t loc_ = 0;
  std::string_view op_;                                     // of the instruction whose operands are being read
  bool external_ = false, visible_ = false, weak_ = false;  // linking directives before a declaration
};

}  // namespace kiln::simcuda::ptx
