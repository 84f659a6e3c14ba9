#include "cpu/cpu_name.h"

#include <algorithm>
#include <string_view>

#include "cpu/cpu_info.h"

namespace kiln::rt {
namespace {

constexpr std::string_view kAnyBlock = "any-block";

bool is_number(std::string_view text) {
  return !text.empty() && text.size() <= 4 && text.find_first_not_of("0123456789") == std::string_view::npos;
}

}  // namespace

std::optional<CpuName> parse_cpu_name(const std::string& text) {
  if (text != "cpu" && !text.starts_with("cpu:")) return std::nullopt;
  CpuName name;
  std::string_view rest = std::string_view(text).substr(3);
  int at = 0;  // a number, then a level, then the blocks: each once at most
  while (!rest.empty()) {
    rest.remove_prefix(1);
    const std::string_view part = rest.substr(0, rest.find(':'));
    rest.remove_prefix(part.size());
    const auto& levels = cpu_levels();
    if (at < 1 && is_number(part)) {
      name.number = static_cast<unsigned>(std::stoi(std::string(part)));
      at = 1;
    } else if (at < 2 && std::find(levels.begin(), levels.end(), part) != levels.end()) {
      name.level = part;
      at = 2;
    } else if (at < 3 && part == kAnyBlock) {
      name.any_block = true;
      at = 3;
    } else {
      return std::nullopt;
    }
  }
  return name;
}

std::string to_string(const CpuName& name) {
  std::string text = "cpu";
  if (name.number != 0) text += ":" + std::to_string(name.number);
  if (!name.level.empty()) text += ":" + name.level;
  if (name.any_block) text += ":" + std::string(kAnyBlock);
  return text;
}

}  // namespace kiln::rt
