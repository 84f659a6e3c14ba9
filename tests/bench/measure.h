// Two things timed in turns, so that a machine that changes its mind changes it for both.
#pragma once
#include <functional>
#include <vector>

#include "report.h"

namespace kiln::bench {

double median(std::vector<double> values);
// Half of the distance between the quartiles, relative to the median.
double spread(const std::vector<double>& values);

// Seconds that `work` takes.
double seconds(const std::function<void()>& work);

// Fills ours, peer, ratio and spread from `runs` interleaved runs after two unmeasured ones. `scale` turns seconds into the row's unit.
// `repeat`: calls in one measurement. `peer` may be empty.
void measure(Row& row, int runs, double scale, int repeat, const std::function<void()>& ours, const std::function<void()>& peer);

}  // namespace kiln::bench
