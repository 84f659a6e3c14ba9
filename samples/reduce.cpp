// A sum in two launches: blocks first, then one block over their sums. The numbers are small integers, so that every order gives the same.
#include "kernels/reduce.h"

#include <numeric>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("reduce", [] {
    const std::size_t n = 1'234'567, blocks = 64;
    std::vector<f32> host(n);
    for (std::size_t i = 0; i < n; ++i) host[i] = static_cast<f32>(i % 9);
    const Buffer<f32> x(host);
    auto partial = Buffer<f32>::uninitialised(x.client(), blocks).value(), sum = Buffer<f32>::uninitialised(x.client(), 1).value();
    samples::block_sum({{blocks}, {samples::reduce_threads}}, x, partial);
    samples::block_sum({{1}, {samples::reduce_threads}}, partial, sum);
    samples::expect_equal(sum.read().value(), {std::accumulate(host.begin(), host.end(), 0.0f)});
    return std::to_string(n) + " elements";
  });
}
