// Twenty kernels, as the program that makes their bundles has them, and as the program that embeds those has them.
#pragma once
#include "kiln/kiln.h"

namespace start {

struct StepCfg {
  std::uint32_t number = 0;
};
KILN_CONFIG(StepCfg, number)
inline constexpr std::uint32_t kKernels = 20, kElements = 4096, kBlock = 256;

}  // namespace start
