// The parts of the benchmark `runtime`.
#pragma once
#include <vector>

#include "report.h"

namespace kiln::bench {

std::vector<Row> runtime_memory();
std::vector<Row> runtime_graph();

}  // namespace kiln::bench
