// The benchmark `runtime`: what the bookkeeping of the runtime costs. Each part is a function in a file of its own.
#include "benches.h"
#include "runtime_rows.h"

namespace kiln::bench {

std::vector<Row> runtime() {
  std::vector<Row> rows;
  for (const auto part : {runtime_memory, launch_over_null_driver, runtime_launches, runtime_graph}) {
    for (Row& row : part()) rows.push_back(std::move(row));
  }
  return rows;
}

}  // namespace kiln::bench
