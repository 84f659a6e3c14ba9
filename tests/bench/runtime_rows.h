// The parts of the benchmark `runtime`.
#pragma once
#include <vector>

#include "report.h"

namespace kiln::bench {

std::vector<Row> runtime_memory();
std::vector<Row> launch_over_null_driver();  // of the benchmark `launch`, too
std::vector<Row> runtime_launches();
std::vector<Row> runtime_graph();

}  // namespace kiln::bench
