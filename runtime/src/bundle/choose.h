// Which of the embedded items a device runs, and which of those is best. Pure functions.
#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "kiln/runtime/bundle.h"

namespace kiln::rt {

// What a launch would be compiled for, and on what.
struct BundleTarget {
  CompileOptions options;        // as the device asks for them: of a GPU the driver's PTX version, of the CPU its level and the exact block
  std::uint32_t capability = 0;  // of a GPU: 90 for 9.0
};

// Empty where the item runs there; else why not, as a clause: "it is for sm_90a only".
std::string why_not(const BundleInfo::Item& item, const BundleTarget& target);

// How good an item is among those that run somewhere: the larger the better, the first number first.
std::array<unsigned, 7> rank(const BundleInfo::Item& item);

// The numbers of the items that run there, the best first: a cubin of the very architecture, then PTX of the highest one; of the CPU the
// highest level, then the exact block, a row, any block; then what assumes more of the launch (aligned arguments, whole warps). Equal ones
// in their order.
std::vector<std::size_t> choose(std::span<const BundleInfo::Item* const> items, const BundleTarget& target);

}  // namespace kiln::rt
