// Every entry point of the CUDA driver, answering success and doing nothing; driver.cpp has those that must do more. Weak, so that it may.
#include "cuda/driver_entries.h"

#pragma GCC diagnostic ignored "-Wunused-parameter"

namespace kiln::cuda {
// clang-format off
#define KILN_FAKE(name, symbol, version, params) extern "C" __attribute__((weak)) CUresult symbol params { return CUDA_SUCCESS; }
KILN_CUDA_ENTRIES(KILN_FAKE)
#undef KILN_FAKE
// clang-format on
}  // namespace kiln::cuda
