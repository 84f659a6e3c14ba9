// NVTX, NVIDIA's interface of profilers, as far as Kiln uses it; found at run time, no header of NVIDIA's.
#pragma once
#include <string>

#include "src/profile/ranges.h"

namespace kiln::cuda {

// The ranges of a library: of libnvToolsExt.so.1 or what has its functions, else of a profiler's own, which wants to be given a table to
// put its functions into (NVTX 3). `why` says what is the matter where the answer is null. The library stays open.
const rt::RangeSink* open_nvtx(const std::string& library, std::string& why);

}  // namespace kiln::cuda
