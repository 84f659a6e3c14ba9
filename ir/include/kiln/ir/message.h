// Texts with places for values, as check and log have them. A place is {} or {:SPEC}; {{ and }} are braces. SPEC is what std::format takes
// of it: [0][WIDTH][.PRECISION][KIND], where KIND is d, x, X, o or b for integers and f, e or g for floats, and only floats have a
// precision.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "kiln/ir/type.h"

namespace kiln::ir {

inline constexpr int kMostWidth = 64, kMostPrecision = 32;

struct MessageSpec {
  bool zeros = false;
  int width = 0, precision = -1;  // -1: none
  char kind = 0;                  // 0: none
  bool plain() const { return !zeros && width == 0 && precision < 0 && kind == 0; }
};
struct MessagePart {
  enum class Kind : std::uint8_t { Words, Place, BadBrace, BadSpec } kind = Kind::Words;
  std::string_view text;  // Words: as they are written out; else the place as it stands in the message
  MessageSpec spec = {};
};

// Takes the next part off the front of `rest`, which is not empty.
constexpr MessagePart next_part(std::string_view& rest) {
  const auto take = [&](std::size_t n) {
    const std::string_view taken = rest.substr(0, n);
    rest.remove_prefix(n);
    return taken;
  };
  const std::size_t brace = rest.find_first_of("{}");
  if (brace != 0) return {MessagePart::Kind::Words, take(brace == std::string_view::npos ? rest.size() : brace)};
  if (rest.size() > 1 && rest[0] == rest[1]) {
    take(1);
    return {MessagePart::Kind::Words, take(1)};
  }
  const std::size_t end = rest.find('}');
  if (rest[0] == '}' || end == std::string_view::npos) return {MessagePart::Kind::BadBrace, take(1)};
  MessagePart part{MessagePart::Kind::Place, take(end + 1)};
  std::string_view in = part.text.substr(1, part.text.size() - 2);
  if (in.empty()) return part;
  const auto accept = [&](char c) {
    const bool there = !in.empty() && in[0] == c;
    if (there) in.remove_prefix(1);
    return there;
  };
  const auto number = [&](int most) {
    if (in.empty() || in[0] < '0' || in[0] > '9') return -1;
    int n = 0;
    for (; !in.empty() && in[0] >= '0' && in[0] <= '9'; in.remove_prefix(1))
      if (n <= most) n = n * 10 + (in[0] - '0');
    return n;
  };
  bool good = accept(':');
  part.spec.zeros = accept('0');
  if (const int width = number(kMostWidth); width >= 0) part.spec.width = width;
  if (accept('.')) {
    part.spec.precision = number(kMostPrecision);
    good = good && part.spec.precision >= 0;
  }
  if (!in.empty() && std::string_view("dxXobfeg").find(in[0]) != std::string_view::npos) {
    part.spec.kind = in[0];
    in.remove_prefix(1);
  }
  if (!good || !in.empty() || part.spec.width > kMostWidth || part.spec.precision > kMostPrecision) part.kind = MessagePart::Kind::BadSpec;
  return part;
}

constexpr bool fits(const MessageSpec& spec, Type type) {
  const bool of_integers = std::string_view("dxXob").find(spec.kind) != std::string_view::npos && spec.kind != 0;
  const bool of_floats = spec.precision >= 0 || spec.kind == 'f' || spec.kind == 'e' || spec.kind == 'g';
  if (is_integer(type)) return !of_floats;
  if (is_real(type)) return !of_integers;
  return !of_integers && !of_floats && !spec.zeros;
}

// What is wrong with a message for values of these types.
enum class MessageProblem : std::uint8_t { None, Brace, Spec, Type, Count };
constexpr MessageProblem find_problem(std::string_view text, std::span<const Type> types) {
  std::size_t places = 0;
  while (!text.empty()) {
    const MessagePart part = next_part(text);
    if (part.kind == MessagePart::Kind::BadBrace) return MessageProblem::Brace;
    if (part.kind == MessagePart::Kind::BadSpec) return MessageProblem::Spec;
    if (part.kind != MessagePart::Kind::Place) continue;
    if (places < types.size() && !fits(part.spec, types[places])) return MessageProblem::Type;
    ++places;
  }
  return places == types.size() ? MessageProblem::None : MessageProblem::Count;
}
// The same as a clause, such as "has 2 {} in its text and 1 values"; empty when nothing is wrong.
std::string describe_problem(std::string_view text, std::span<const Type> types);

// The text with the values, whose bits are given. What does not fit stays as it is written.
std::string format_message(std::string_view text, std::span<const Type> types, std::span<const std::uint64_t> bits);

}  // namespace kiln::ir
