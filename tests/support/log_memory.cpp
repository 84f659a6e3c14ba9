#include "support/log_memory.h"

#include <algorithm>
#include <cstring>

#include "kiln/ir/message.h"

namespace kiln::test {

LogMemory::LogMemory(const ir::Prepared& kernel, std::size_t capacity)
    : kernel_(kernel),
      stride_(ir::log_stride(kernel.kernel)),
      bytes_(kernel.logs.empty() ? sizeof(ir::LogHeader) : sizeof(ir::LogHeader) + capacity * stride_),
      memory_(bytes_ + 63),
      at_(memory_.data() + (64 - reinterpret_cast<std::uintptr_t>(memory_.data()) % 64) % 64) {
  reinterpret_cast<ir::LogHeader*>(at_)->capacity = (bytes_ - sizeof(ir::LogHeader)) / stride_;
}

std::vector<interp::Logged> LogMemory::lines(std::string& wrong) const {
  std::vector<interp::Logged> all;
  ir::LogHeader header;
  std::memcpy(&header, at_, sizeof header);
  if (header.count > header.capacity) wrong = "more lines are logged than there is room for";
  const std::byte* at = at_ + sizeof header;
  for (std::uint64_t i = 0; i < std::min(header.count, header.capacity); ++i, at += stride_) {
    ir::LogRecord record;
    std::memcpy(&record, at, sizeof record);
    if (record.state == 0 || record.state > kernel_.logs.size()) {
      wrong = "a record of the log is not whole";
      continue;
    }
    const ir::LogSite& site = kernel_.logs[record.state - 1];
    std::vector<std::uint64_t> bits(site.values.size());
    if (!bits.empty()) std::memcpy(bits.data(), at + sizeof record, bits.size() * sizeof(std::uint64_t));
    interp::Logged line{.site = record.state - 1, .text = ir::format_message(site.text, site.values, bits)};
    std::copy_n(record.block, 3, line.block);
    std::copy_n(record.thread, 3, line.thread);
    all.push_back(std::move(line));
  }
  return all;
}

}  // namespace kiln::test
