#include "kiln/ir/ops.h"

#include <algorithm>
#include <array>
#include <utility>

namespace kiln::ir {
namespace {

constexpr std::uint8_t B = kBoolClass, I = kIntegerClass, F = kFloatClass, S = kStoredClass;
constexpr OpInfo kOps[kOpcodeCount] = {
#define KILN_OP(E, mnemonic, form, types, effect, uniformity) \
  OpInfo{mnemonic, Form::form, static_cast<std::uint8_t>(types), Effect::effect, UniformityRule::uniformity},
#include "kiln/ir/ops.def"
};

// Opcodes sorted by mnemonic, so that parse_opcode is a binary search.
constexpr auto kByName = [] {
  std::array<std::uint8_t, kOpcodeCount> order{};
  for (int i = 0; i < kOpcodeCount; ++i) order[i] = static_cast<std::uint8_t>(i);
  std::sort(order.begin(), order.end(), [](std::uint8_t a, std::uint8_t b) { return kOps[a].mnemonic < kOps[b].mnemonic; });
  return order;
}();

constexpr std::string_view kCombineNames[] = {"add", "mul", "min", "max", "and", "or", "xor"};

}  // namespace

const OpInfo& info(Opcode code) { return kOps[static_cast<int>(code)]; }

std::optional<Opcode> parse_opcode(std::string_view text) {
  const auto it = std::lower_bound(kByName.begin(), kByName.end(), text,
                                   [](std::uint8_t code, std::string_view wanted) { return kOps[code].mnemonic < wanted; });
  if (it == kByName.end() || kOps[*it].mnemonic != text) return std::nullopt;
  return static_cast<Opcode>(*it);
}

bool converts(Opcode code, Type from, Type to) {
  const std::uint8_t types = info(code).types;
  if ((types & type_class(from)) == 0 || (types & type_class(to)) == 0) return false;
  if (code == Opcode::BitCast) return bit_width(from) == bit_width(to);
  return !(is_float8(from) || is_float8(to)) || (is_real(from) && is_real(to));
}

std::string_view name(Combine c) { return kCombineNames[static_cast<int>(c)]; }

std::optional<Combine> parse_combine(std::string_view text) {
  for (int i = 0; i < static_cast<int>(std::size(kCombineNames)); ++i) {
    if (kCombineNames[i] == text) return static_cast<Combine>(i);
  }
  return std::nullopt;
}

}  // namespace kiln::ir
