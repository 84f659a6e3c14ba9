// A report of memory as a table for people.
#include <algorithm>
#include <array>

#include "kiln/runtime/memory.h"

namespace kiln {
namespace {

constexpr std::size_t kColumns = 9;
using Row = std::array<std::string, kColumns>;

// The first column is words, the others are numbers.
std::string table(const std::vector<Row>& rows) {
  std::array<std::size_t, kColumns> widths{};
  for (const Row& row : rows)
    for (std::size_t i = 0; i < kColumns; ++i) widths[i] = std::max(widths[i], row[i].size());
  std::string text;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < kColumns; ++i) {
      const std::string room(widths[i] - row[i].size(), ' ');
      text += i == 0 ? row[i] + room : "  " + room + row[i];
    }
    text += '\n';
  }
  return text;
}

std::string number(std::uint64_t n) { return std::to_string(n); }

}  // namespace

std::string MemoryReport::text() const {
  std::vector<Row> rows{{"pool", "allocations", "in use", "padding", "reserved", "peak in use", "pages", "page bytes", "cap"}};
  for (const PoolReport& p : pools) {
    rows.push_back({std::string(name(p.kind)) + " " + number(p.id) + (p.outdated ? " (outdated)" : ""), number(p.usage.allocations),
                    number(p.usage.bytes_in_use), number(p.usage.bytes_padding), number(p.usage.bytes_reserved),
                    number(p.bytes_in_use_peak), number(p.pages), p.page_bytes == kAnySize ? "any" : number(p.page_bytes),
                    p.cap == 0 ? "none" : number(p.cap)});
  }
  rows.push_back({"all", number(total.allocations), number(total.bytes_in_use), number(total.bytes_padding), number(total.bytes_reserved),
                  number(bytes_in_use_peak), "", "", ""});
  return table(rows) + "reserved at most: " + number(bytes_reserved_peak) +
         " bytes; on their way back to the device: " + number(bytes_leaving) + " bytes\n";
}

}  // namespace kiln
