// Rows of a benchmark and how they are printed.
#pragma once
#include <optional>
#include <string>
#include <vector>

namespace kiln::bench {

struct Row {
  std::string name;
  std::optional<double> ours, peer;  // medians
  std::string peer_name, unit;
  std::optional<double> ratio;  // median over the runs of ours / peer
  double spread = 0;  // of the ratio (of ours without a peer): half of what the middle half of the runs spans, relative to the median
  std::string why;    // there is no peer, or no figure: the reason
};

// One JSON document (--json) or a table.
void print(const std::string& bench, const std::vector<Row>& rows, bool json);

}  // namespace kiln::bench
