#include "kiln/dsl/space.h"

#include <algorithm>
#include <bit>
#include <charconv>

namespace kiln::dsl {
namespace {

std::int64_t as_signed(const Member& m, std::uint64_t bits) {
  const unsigned shift = 64 - 8 * m.bytes;
  return static_cast<std::int64_t>(bits << shift) >> shift;
}

template <class T>
std::string chars(T value) {
  char text[64];
  const auto end = std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

template <class T>
std::optional<T> number(const std::string& text) {
  T value{};
  const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
  if (end.ec != std::errc() || end.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string list(const Member& m, const std::vector<std::uint64_t>& values) {
  std::string text;
  for (std::uint64_t v : values) text += (text.empty() ? "" : ", ") + format(m, v);
  return text;
}

}  // namespace

std::string format(const Member& m, std::uint64_t bits) {
  switch (m.kind) {
    case Member::Kind::Bool: return bits ? "true" : "false";
    case Member::Kind::Signed: return chars(as_signed(m, bits));
    case Member::Kind::Unsigned: return chars(bits);
    case Member::Kind::Float:
      return m.bytes == 4 ? chars(std::bit_cast<float>(static_cast<std::uint32_t>(bits))) : chars(std::bit_cast<double>(bits));
  }
  return "";
}

std::string type_text(const Member& m) {
  const char* letter = m.kind == Member::Kind::Float ? "f" : m.kind == Member::Kind::Signed ? "i" : "u";
  return m.kind == Member::Kind::Bool ? "bool" : letter + std::to_string(8 * m.bytes);
}

std::optional<std::uint64_t> parse(const Member& m, const std::string& text) {
  const std::uint64_t mask = m.bytes == 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << 8 * m.bytes) - 1;
  switch (m.kind) {
    case Member::Kind::Bool:
      if (text == "true" || text == "1") return 1;
      if (text == "false" || text == "0") return 0;
      return std::nullopt;
    case Member::Kind::Signed: {
      const auto v = number<std::int64_t>(text);
      if (!v || as_signed(m, static_cast<std::uint64_t>(*v) & mask) != *v) return std::nullopt;
      return static_cast<std::uint64_t>(*v) & mask;
    }
    case Member::Kind::Unsigned: {
      const auto v = number<std::uint64_t>(text);
      if (!v || *v > mask) return std::nullopt;
      return *v;
    }
    case Member::Kind::Float:
      if (m.bytes == 4) {
        const auto v = number<float>(text);
        return v ? std::optional<std::uint64_t>(std::bit_cast<std::uint32_t>(*v)) : std::nullopt;
      }
      const auto v = number<double>(text);
      return v ? std::optional<std::uint64_t>(std::bit_cast<std::uint64_t>(*v)) : std::nullopt;
  }
  return std::nullopt;
}

std::string ConfigSpace::text(const ConfigBits& config) const {
  std::string text;
  for (std::size_t i = 0; i < members.size(); ++i) text += (i ? "," : "") + members[i].name + "=" + format(members[i], config[i]);
  return text;
}

Result<ConfigBits> ConfigSpace::parse(const std::string& text) const {
  ConfigBits bits = defaults;
  std::vector<char> given(members.size(), 0);
  const auto wrong = [](std::string message) { return Error(ErrorCode::Validation, std::move(message)); };
  for (std::size_t start = 0; start < text.size();) {
    const std::size_t comma = std::min(text.find(',', start), text.size());
    const std::string part = text.substr(start, comma - start);
    start = comma + 1;
    const std::size_t equal = part.find('=');
    const std::string name = part.substr(0, equal);
    const auto member = std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.name == name; });
    if (member == members.end()) {
      std::string known;
      for (const Member& m : members) known += (known.empty() ? "" : ", ") + m.name;
      return wrong("unknown parameter '" + name + "'; the config has " + known);
    }
    const auto i = static_cast<std::size_t>(member - members.begin());
    if (equal == std::string::npos)
      return wrong("parameter '" + name + "' has no value; write " + name + "=" + format(*member, defaults[i]));
    if (given[i]) return wrong("parameter '" + name + "' is given twice");
    given[i] = 1;
    const auto value = dsl::parse(*member, part.substr(equal + 1));
    if (!value) return wrong("'" + part.substr(equal + 1) + "' is no value of parameter '" + name + "'");
    bits[i] = *value;
  }
  return bits;
}

std::optional<std::string> ConfigSpace::refusal(const ConfigBits& config) const {
  if (!problem.empty()) return problem;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (!values[i].empty() && std::find(values[i].begin(), values[i].end(), config[i]) == values[i].end()) {
      return members[i].name + "=" + format(members[i], config[i]) + " is not in the space; it has " + list(members[i], values[i]);
    }
  }
  for (const Rule& rule : rules) {
    if (!rule.holds(config)) return "the rule '" + rule.name + "' refuses " + text(config);
  }
  return std::nullopt;
}

std::vector<ConfigAxis> ConfigSpace::axes() const {
  std::vector<ConfigAxis> all;
  for (std::size_t i = 0; i < members.size(); ++i) {
    ConfigAxis axis;
    axis.name = members[i].name;
    axis.default_value = format(members[i], defaults[i]);
    axis.type = type_text(members[i]);
    axis.enum_name = members[i].enum_name;
    axis.enum_base = members[i].enum_base;
    axis.enum_scoped = members[i].enum_scoped;
    axis.offset = members[i].offset;
    for (std::uint64_t v : values[i]) axis.values.push_back(format(members[i], v));
    all.push_back(std::move(axis));
  }
  return all;
}

void ConfigSpace::each(const std::function<void(const ConfigBits&)>& visit) const {
  std::vector<std::size_t> at(members.size(), 0);
  for (;;) {
    ConfigBits bits = defaults;
    for (std::size_t i = 0; i < members.size(); ++i) {
      if (!values[i].empty()) bits[i] = values[i][at[i]];
    }
    visit(bits);
    std::size_t i = members.size();
    while (i > 0) {
      --i;
      if (++at[i] < values[i].size()) break;
      at[i] = 0;
      if (i == 0) return;
    }
    if (members.empty()) return;
  }
}

void ConfigSpace::settle_defaults(const ConfigBits& of_struct) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    auto& v = values[i];
    std::vector<std::uint64_t> distinct;
    for (std::uint64_t x : v) {
      if (std::find(distinct.begin(), distinct.end(), x) == distinct.end()) distinct.push_back(x);
    }
    v = std::move(distinct);
    const auto own = std::find(v.begin(), v.end(), of_struct[i]);
    if (own != v.end()) std::rotate(v.begin(), own, own + 1);
    defaults[i] = v.empty() ? of_struct[i] : v.front();
  }
}

// g++: "std::string kiln::dsl::name_of() [with T = ns::S; std::string = ...]"; clang: "std::string kiln::dsl::name_of() [T = ns::S]".
std::string type_name(const char* pretty_function) {
  const std::string text = pretty_function;
  std::size_t start = text.find("T = ");
  if (start == std::string::npos) return text;
  start += 4;
  int depth = 0;
  std::size_t end = start;
  for (; end < text.size(); ++end) {
    const char c = text[end];
    if (c == '<' || c == '(' || c == '[' || c == '{') ++depth;
    if (c == '>' || c == ')' || c == '}') --depth;
    if (c == ']' && depth-- == 0) break;
    if (c == ';' && depth == 0) break;
  }
  return text.substr(start, end - start);
}

}  // namespace kiln::dsl
