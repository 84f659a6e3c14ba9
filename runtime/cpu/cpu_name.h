// The names of devices on the processor: "cpu", "cpu:3", "cpu:x86-64-v2", "cpu:any-block", "cpu:3:x86-64:any-block".
#pragma once
#include <compare>
#include <optional>
#include <string>

namespace kiln::rt {

struct CpuName {
  unsigned number = 0;     // which of the devices of that kind
  std::string level = {};  // what its code is compiled for; empty: for this processor
  bool any_block = false;  // its code takes every shape of blocks, instead of being compiled for one
  auto operator<=>(const CpuName&) const = default;
};

// Nothing for what is no such name. The level need not be one that this processor has.
std::optional<CpuName> parse_cpu_name(const std::string& text);
std::string to_string(const CpuName& name);

}  // namespace kiln::rt
