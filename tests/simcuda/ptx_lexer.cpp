#include "simcuda/ptx_lexer.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string>

namespace kiln::simcuda::ptx {
namespace {

bool begins_name(char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$' || c == '%'; }
bool in_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$'; }
bool digit(char c) { return c >= '0' && c <= '9'; }

}  // namespace

void Lexer::skip_space() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == '\n') {
      ++line_;
      ++at_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '/') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '/' && at_ + 1 < text_.size() && text_[at_ + 1] == '*') {
      at_ += 2;
      while (at_ < text_.size() && !(text_[at_] == '*' && at_ + 1 < text_.size() && text_[at_ + 1] == '/')) line_ += text_[at_++] == '\n';
      at_ = at_ + 2 < text_.size() ? at_ + 2 : text_.size();
    } else {
      return;
    }
  }
}

Token Lexer::number() {
  Token t;
  t.kind = Token::Kind::Int;
  const std::size_t begin = at_;
  const auto end_of = [&](auto predicate) {
    std::size_t e = at_;
    while (e < text_.size() && predicate(text_[e])) ++e;
    return e;
  };
  const auto hex_digit = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  const char second = at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  if (text_[at_] == '0' && (second == 'f' || second == 'F' || second == 'd' || second == 'D')) {
    const std::size_t digits = second == 'f' || second == 'F' ? 8 : 16;
    at_ += 2;
    const std::size_t e = end_of(hex_digit);
    t.kind = e - at_ == digits ? Token::Kind::Float : Token::Kind::Punct;
    t.is_double = digits == 16;
    std::from_chars(text_.data() + at_, text_.data() + e, t.value, 16);
    at_ = e;
  } else if (text_[at_] == '0' && (second == 'x' || second == 'X' || second == 'b' || second == 'B')) {
    at_ += 2;
    const std::size_t e = end_of(hex_digit);
    const auto r = std::from_chars(text_.data() + at_, text_.data() + e, t.value, second == 'x' || second == 'X' ? 16 : 2);
    if (e == at_ || r.ptr != text_.data() + e) t.kind = Token::Kind::Punct;
    at_ = e;
  } else {
    std::size_t e = end_of(digit);
    const bool point = e < text_.size() && text_[e] == '.' && e + 1 < text_.size() && digit(text_[e + 1]);
    const bool exponent = e < text_.size() && (text_[e] == 'e' || text_[e] == 'E');
    if (point || exponent) {
      if (point) {
        ++e;
        while (e < text_.size() && digit(text_[e])) ++e;
      }
      if (e < text_.size() && (text_[e] == 'e' || text_[e] == 'E')) {
        ++e;
        if (e < text_.size() && (text_[e] == '+' || text_[e] == '-')) ++e;
        while (e < text_.size() && digit(text_[e])) ++e;
      }
      t.kind = Token::Kind::Float;
      t.is_double = t.is_decimal = true;
      t.value = std::bit_cast<std::uint64_t>(std::strtod(std::string(text_.substr(at_, e - at_)).c_str(), nullptr));
    } else {
      const bool octal = text_[at_] == '0' && e > at_ + 1;
      const auto r = std::from_chars(text_.data() + at_, text_.data() + e, t.value, octal ? 8 : 10);
      if (r.ec != std::errc() || r.ptr != text_.data() + e) t.kind = Token::Kind::Punct;
    }
    at_ = e;
  }
  if (t.kind == Token::Kind::Int && at_ < text_.size() && text_[at_] == 'U') {
    t.is_unsigned = true;
    ++at_;
  }
  t.text = text_.substr(begin, at_ - begin);
  return t;
}

Token Lexer::next() {
  const std::size_t before = at_;
  skip_space();
  Token t;
  t.line = line_;
  t.spaced = at_ != before;
  if (at_ >= text_.size()) return t;
  const std::size_t begin = at_;
  const char c = text_[at_];
  if (begins_name(c)) {
    ++at_;
    while (at_ < text_.size() && in_name(text_[at_])) ++at_;
    t.kind = Token::Kind::Identifier;
    t.text = text_.substr(begin, at_ - begin);
    if (t.text == "%") t.kind = Token::Kind::Punct;
  } else if (c == '.' && at_ + 1 < text_.size() && (in_name(text_[at_ + 1]))) {
    ++at_;
    while (at_ < text_.size() && (in_name(text_[at_]) || (text_[at_] == ':' && at_ + 1 < text_.size() && text_[at_ + 1] == ':' && ++at_)))
      ++at_;
    t.kind = Token::Kind::Dotted;
    t.text = text_.substr(begin + 1, at_ - begin - 1);
  } else if (digit(c)) {
    const bool spaced = t.spaced;
    const unsigned line = t.line;
    t = number();
    t.spaced = spaced;
    t.line = line;
  } else if (c == '"') {
    ++at_;
    while (at_ < text_.size() && text_[at_] != '"' && text_[at_] != '\n') at_ += text_[at_] == '\\' && at_ + 1 < text_.size() ? 2 : 1;
    t.kind = Token::Kind::String;
    t.text = text_.substr(begin + 1, at_ - begin - 1);
    if (at_ < text_.size()) ++at_;
  } else {
    ++at_;
    t.kind = Token::Kind::Punct;
    t.text = text_.substr(begin, 1);
  }
  return t;
}

void Lexer::skip_block() {
  int depth = 1;
  while (at_ < text_.size() && depth > 0) {
    const char c = text_[at_++];
    if (c == '\n') ++line_;
    if (c == '{') ++depth;
    if (c == '}') --depth;
  }
}

}  // namespace kiln::simcuda::ptx
