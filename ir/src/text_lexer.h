// Tokens of the text form. A token knows whether it is the first of its line, since a statement ends with its line.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace kiln::ir::text {

enum class Kind : std::uint8_t { End, Word, Number, Value, String, Punct, Bad };

struct Token {
  Kind kind = Kind::End;
  std::string_view text;  // as written; Value: without the %
  std::uint32_t line = 1, column = 1;
  bool first_on_line = true;
  std::string_view problem{};  // Bad: what is wrong
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();  // O(token); never throws; after the end: End for ever

 private:
  void skip_blank();
  std::size_t word_end(std::size_t from) const;
  std::size_t number_end(std::size_t from) const;

  std::string_view text_;
  std::size_t at_ = 0, line_start_ = 0;
  std::uint32_t line_ = 1;
  bool fresh_line_ = true;
};

// For error messages: the token in quotes, short.
std::string describe(const Token& token);

}  // namespace kiln::ir::text
