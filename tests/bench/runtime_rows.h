// The parts of the benchmark `runtime`.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "report.h"

namespace kiln::bench {

// One without numbers yet; `why` stands in the place of a peer.
inline Row row(std::string name, std::string unit, std::string why) {
  Row r;
  r.name = std::move(name);
  r.unit = std::move(unit);
  r.why = std::move(why);
  return r;
}

std::vector<Row> runtime_memory();
std::vector<Row> launch_over_null_driver();  // of the benchmark `launch`, too
std::vector<Row> runtime_launches();
std::vector<Row> runtime_graph();

}  // namespace kiln::bench
