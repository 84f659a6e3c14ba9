// The benchmarks, each a function from nothing to its rows.
#pragma once
#include <vector>

#include "report.h"

namespace kiln::bench {

std::vector<Row> jit();      // definition -> PTX, against NVRTC
std::vector<Row> cpu();      // kernels on the CPU device, against loops in C++
std::vector<Row> compile();  // how the time from a recording to code grows with its size
std::vector<Row> launch();   // what a launch costs the host

}  // namespace kiln::bench
