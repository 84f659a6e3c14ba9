// PTX text as tokens.
#pragma once
#include <cstdint>
#include <string_view>

namespace kiln::simcuda::ptx {

struct Token {
  enum class Kind : std::uint8_t { End, Identifier, Dotted, Int, Float, String, Punct } kind = Kind::End;
  std::string_view text;  // Dotted: without the dot; String: without the quotes
  unsigned line = 0;
  bool spaced = true;        // white space before it
  bool is_double = false;    // Float
  bool is_decimal = false;   // Float
  bool is_unsigned = false;  // Int with suffix U
  std::uint64_t value = 0;   // Int; Float: its bits
  char punct() const { return kind == Kind::Punct ? text[0] : '\0'; }
};

class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) {}
  Token next();
  unsigned line() const { return line_; }
  // Skips to the closing brace of the block whose opening one was the last token: debug sections.
  void skip_block();

 private:
  void skip_space();
  Token number();
  std::string_view text_;
  std::size_t at_ = 0;
  unsigned line_ = 1;
};

}  // namespace kiln::simcuda::ptx
