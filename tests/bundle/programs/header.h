// What a build step generates for a program that launches those kernels.
#pragma once
#include "kiln/kiln.h"

extern "C" const char kiln_bundles_of_tests;

namespace ns {
struct ShiftCfg {
  std::uint32_t by = 1;
};
KILN_CONFIG(ShiftCfg, by)
inline constinit const kiln::EmbeddedKernel<kiln::In<kiln::f32>, kiln::Out<kiln::f32>, kiln::Val<kiln::f32>> scale{"ns::scale",
                                                                                                                   &kiln_bundles_of_tests};
inline constinit const kiln::EmbeddedFamily<ShiftCfg, kiln::InOut<kiln::u32>> shift{"ns::shift", &kiln_bundles_of_tests};
}  // namespace ns
