#include "measure.h"

#include <algorithm>
#include <chrono>

namespace kiln::bench {
namespace {

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double at = q * static_cast<double>(values.size() - 1);
  const std::size_t low = static_cast<std::size_t>(at), high = std::min(low + 1, values.size() - 1);
  return values[low] + (at - static_cast<double>(low)) * (values[high] - values[low]);
}

}  // namespace

double median(std::vector<double> values) { return values.empty() ? 0 : quantile(std::move(values), 0.5); }

double spread(const std::vector<double>& values) {
  if (values.empty()) return 0;
  const double middle = quantile(values, 0.5);
  return middle == 0 ? 0 : (quantile(values, 0.75) - quantile(values, 0.25)) / 2 / middle;
}

double seconds(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

void measure(Row& row, int runs, double scale, int repeat, const std::function<void()>& ours, const std::function<void()>& peer) {
  const auto timed = [&](const std::function<void()>& work) {
    return seconds([&] {
             for (int i = 0; i < repeat; ++i) work();
           }) /
           repeat * scale;
  };
  std::vector<double> mine, theirs, ratios;
  for (int run = -2; run < runs; ++run) {
    // Who goes first changes with each run.
    double a = 0, b = 0;
    if (run % 2 == 0) {
      a = timed(ours);
      if (peer) b = timed(peer);
    } else {
      if (peer) b = timed(peer);
      a = timed(ours);
    }
    if (run < 0) continue;
    mine.push_back(a);
    if (peer) {
      theirs.push_back(b);
      ratios.push_back(a / b);
    }
  }
  row.ours = median(mine);
  if (peer) {
    row.peer = median(theirs);
    row.ratio = median(ratios);
  }
  row.spread = spread(peer ? ratios : mine);
}

}  // namespace kiln::bench
