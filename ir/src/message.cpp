#include "kiln/ir/message.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "kiln/ir/decimal.h"
#include "kiln/ir/floats.h"

namespace kiln::ir {
namespace {

// Without sign.
std::string digits(std::uint64_t value, char kind) {
  std::array<char, 72> buffer;
  const int base = kind == 'x' || kind == 'X' ? 16 : kind == 'o' ? 8 : kind == 'b' ? 2 : 10;
  std::string text(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, base).ptr);
  if (kind == 'X') std::ranges::transform(text, text.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  return text;
}

std::string float_digits(Type type, std::uint64_t bits, const MessageSpec& spec) {
  if (spec.kind == 0 && spec.precision < 0) return shortest_decimal(type, bits);
  std::array<char, 400> buffer;  // the largest f64 has 309 digits before the point
  const auto how = spec.kind == 'f'   ? std::chars_format::fixed
                   : spec.kind == 'e' ? std::chars_format::scientific
                                      : std::chars_format::general;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), float_value(type, bits), how, spec.precision < 0 ? 6 : spec.precision);
  return {buffer.data(), end.ptr};
}

std::string value_text(Type type, std::uint64_t bits, const MessageSpec& spec) {
  const auto missing = [&](const std::string& text) {
    const auto width = static_cast<std::size_t>(spec.width);
    return text.size() < width ? width - text.size() : 0;
  };
  if (is_bool(type)) {
    std::string text = bits != 0 ? "true" : "false";
    return text + std::string(missing(text), ' ');
  }
  std::string text;
  if (is_real(type)) {
    text = is_nan(type, bits) ? "nan" : float_digits(type, bits, spec);  // nobody specifies the sign of a NaN
  } else {
    const bool negative = is_signed(type) && sign_extend(type, bits) < 0;
    const std::uint64_t magnitude = negative ? 0 - static_cast<std::uint64_t>(sign_extend(type, bits)) : bits;
    text = (negative ? "-" : "") + digits(magnitude, spec.kind);
  }
  const bool number = text.back() >= '0' && text.back() <= '9';  // inf and nan are not filled with zeros
  if (spec.zeros && (number || !is_real(type))) return text.insert(text[0] == '-' ? 1 : 0, missing(text), '0');
  return text.insert(0, missing(text), ' ');
}

}  // namespace

std::string describe_problem(std::string_view text, std::span<const Type> types) {
  const MessageProblem problem = find_problem(text, types);
  if (problem == MessageProblem::None) return {};
  std::size_t places = 0;
  while (!text.empty()) {
    const MessagePart part = next_part(text);
    const std::string what(part.text);
    switch (part.kind) {
      case MessagePart::Kind::Words: continue;
      case MessagePart::Kind::BadBrace: return "has a lone '" + what + "' in its text; a brace is written twice";
      case MessagePart::Kind::BadSpec:
        return "has '" + what +
               "' in its text; a place is {}, or {:[0][width][.precision][kind]} with d, x, X, o, b, f, e or g and at most " +
               std::to_string(kMostWidth) + " characters, " + std::to_string(kMostPrecision) + " behind the point";
      case MessagePart::Kind::Place:
        if (problem == MessageProblem::Type && !fits(part.spec, types[places]))
          return "has '" + what + "' in its text for a value of " + std::string(name(types[places]));
        ++places;
    }
  }
  return "has " + std::to_string(places) + " {} in its text and " + std::to_string(types.size()) + " values";
}

std::string format_message(std::string_view text, std::span<const Type> types, std::span<const std::uint64_t> bits) {
  std::string out;
  std::size_t next = 0;
  while (!text.empty()) {
    const MessagePart part = next_part(text);
    if (part.kind == MessagePart::Kind::Place && next < types.size() && next < bits.size() && fits(part.spec, types[next])) {
      out += value_text(types[next], bits[next], part.spec);
      ++next;
    } else {
      out += part.text;
    }
  }
  return out;
}

}  // namespace kiln::ir
