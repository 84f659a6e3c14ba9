#include "text_lexer.h"

#include "text_names.h"

namespace kiln::ir::text {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Lexer::skip_blank() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++at_;
      ++line_;
      line_start_ = at_;
      fresh_line_ = true;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      ++at_;
    } else if (c == '#' || (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/')) {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else {
      return;
    }
  }
}

std::size_t Lexer::word_end(std::size_t from) const {
  while (from < text_.size() && is_identifier_byte(text_[from])) ++from;
  return from;
}

// Digits, letters and points; a sign after the e of a decimal exponent.
std::size_t Lexer::number_end(std::size_t from) const {
  const bool hex = from + 1 < text_.size() && text_[from] == '0' && (text_[from + 1] == 'x' || text_[from + 1] == 'X');
  std::size_t i = from;
  while (i < text_.size()) {
    const char c = text_[i];
    const bool sign = (c == '+' || c == '-') && !hex && i > from && (text_[i - 1] == 'e' || text_[i - 1] == 'E');
    if (!is_identifier_byte(c) && c != '.' && !sign) break;
    ++i;
  }
  return i;
}

Token Lexer::next() {
  skip_blank();
  Token t{.text = {}, .line = line_, .column = static_cast<std::uint32_t>(at_ - line_start_ + 1), .first_on_line = fresh_line_};
  fresh_line_ = false;
  if (at_ >= text_.size()) return t;
  const std::size_t start = at_;
  const char c = text_[at_];
  const char following = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (is_digit(c) || (c == '-' && is_identifier_byte(following))) {
    t.kind = Kind::Number;
    at_ = number_end(c == '-' ? at_ + 1 : at_);
  } else if (is_identifier_byte(c)) {
    t.kind = Kind::Word;
    at_ = word_end(at_);
  } else if (c == '%') {
    at_ = word_end(at_ + 1);
    t.kind = at_ > start + 1 ? Kind::Value : Kind::Bad;
    t.problem = "a name such as %0 or %sum is expected after %";
    t.text = text_.substr(start + 1, at_ - start - 1);
    return t;
  } else if (c == '"') {
    ++at_;
    t.kind = Kind::Bad;
    t.problem = "the string has no closing quote on its line";
    while (at_ < text_.size() && text_[at_] != '\n') {
      if (text_[at_] == '"') {
        ++at_;
        t.kind = Kind::String;
        break;
      }
      at_ += text_[at_] == '\\' && at_ + 1 < text_.size() && text_[at_ + 1] != '\n' ? 2 : 1;
    }
  } else if (std::string_view("{}[]:,=.@*").find(c) != std::string_view::npos) {
    t.kind = Kind::Punct;
    ++at_;
  } else {
    t.kind = Kind::Bad;
    t.problem = "this byte has no meaning here";
    ++at_;
  }
  t.text = text_.substr(start, at_ - start);
  return t;
}

std::string describe(const Token& token) {
  if (token.kind == Kind::End) return "the end of the text";
  std::string shown = token.kind == Kind::Value ? "%" : "";
  for (const char ch : token.text.substr(0, 40)) {
    const auto c = static_cast<unsigned char>(ch);
    if (c >= 0x20 && c < 0x7f) {
      shown += ch;
    } else {
      shown += "\\x";
      shown += "0123456789abcdef"[c >> 4];
      shown += "0123456789abcdef"[c & 15];
    }
  }
  if (token.text.size() > 40) shown += "...";
  return "'" + shown + "'";
}

}  // namespace kiln::ir::text
