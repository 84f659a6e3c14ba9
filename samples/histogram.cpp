// A histogram through shared memory, checked against a loop in C++.
#include "kernels/histogram.h"

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("histogram", [] {
    const std::size_t n = 1'000'000;
    std::vector<u32> keys(n), want(samples::histogram_bins);
    for (std::size_t i = 0; i < n; ++i) {
      keys[i] = static_cast<u32>(i * 2654435761u) >> 25;
      if (keys[i] < samples::histogram_bins) ++want[keys[i]];
    }
    const Buffer<u32> k(keys);
    auto bins = Buffer<u32>::zeroed(k.client(), samples::histogram_bins).value();
    samples::histogram({{32}, {256}}, k, bins);
    samples::expect_equal(bins.read().value(), want);
    return std::to_string(n) + " keys";
  });
}
