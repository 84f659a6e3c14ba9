// The benchmarks, each a function from nothing to its rows.
#pragma once
#include <vector>

#include "report.h"

namespace kiln::bench {

std::vector<Row> jit();      // definition -> PTX, against NVRTC
std::vector<Row> cpu();      // kernels on the CPU device, against loops in C++
std::vector<Row> blocks();   // code for the CPU that is told its block at launch, against code for the block
std::vector<Row> compile();  // how the time from a recording to code grows with its size
std::vector<Row> launch();   // what a launch costs the host
std::vector<Row> runtime();  // what the runtime's bookkeeping costs
std::vector<Row> start();    // what it takes to a first launch
std::vector<Row> emit();     // the command line: many kernels for many architectures, against llc
std::vector<Row> math();     // math functions: time against SLEEF's on the CPU, instructions against libdevice's
std::vector<Row> math_on_the_cpu();
std::vector<Row> math_in_ptx();

}  // namespace kiln::bench
