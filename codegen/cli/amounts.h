// Numbers with a unit on the command line: read and shown.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace kiln::cli {

// A number with a unit of `units`, as in "64M"; the first unit is what holds without one. Throws a usage error that names the option.
std::uint64_t amount(const std::string& text, const std::string& option, const std::vector<std::pair<char, std::uint64_t>>& units);
// Bytes: "500M", "1G".
std::uint64_t size_amount(const std::string& text, const std::string& option);

std::string size_text(std::uint64_t bytes);  // "812 B", "41.5 KiB", "3.0 MiB"

}  // namespace kiln::cli
