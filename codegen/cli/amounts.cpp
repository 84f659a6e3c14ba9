#include "amounts.h"

#include <cstdio>

#include "command.h"

namespace kiln::cli {

std::uint64_t amount(const std::string& text, const std::string& option, const std::vector<std::pair<char, std::uint64_t>>& units) {
  std::uint64_t unit = units.front().second;
  std::string digits = text, known;
  for (const auto& [name, size] : units) {
    known += (known.empty() ? "" : ", ") + std::string(1, name);
    if (!text.empty() && text.back() == name) unit = size, digits.pop_back();
  }
  constexpr std::uint64_t most = std::uint64_t{1} << 50;
  if (digits.empty() || digits.size() > 15 || digits.find_first_not_of("0123456789") != std::string::npos ||
      std::stoull(digits) > most / unit)
    usage(option + " '" + text + "': expected a whole number, with one of " + known + " behind it or none");
  return std::stoull(digits) * unit;
}

std::uint64_t size_amount(const std::string& text, const std::string& option) {
  return amount(text, option, {{'B', 1}, {'K', 1 << 10}, {'M', 1 << 20}, {'G', 1 << 30}});
}

std::string size_text(std::uint64_t bytes) {
  char text[32];
  if (bytes < 10'000) std::snprintf(text, sizeof text, "%llu B", static_cast<unsigned long long>(bytes));
  else if (bytes < 10'000'000) std::snprintf(text, sizeof text, "%.1f KiB", static_cast<double>(bytes) / 1024);
  else std::snprintf(text, sizeof text, "%.1f MiB", static_cast<double>(bytes) / (1024 * 1024));
  return text;
}

}  // namespace kiln::cli
