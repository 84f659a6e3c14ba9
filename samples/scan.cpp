// An inclusive scan of many blocks: each block by itself, the totals on the host, the offsets added.
#include "kernels/scan.h"

#include <numeric>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("scan", [] {
    const std::size_t n = 100'000, blocks = (n + samples::scan_threads - 1) / samples::scan_threads;
    std::vector<i32> host(n), want(n);
    for (std::size_t i = 0; i < n; ++i) host[i] = static_cast<i32>(i % 11) - 3;
    std::inclusive_scan(host.begin(), host.end(), want.begin());
    const LaunchConfig config{{blocks}, {samples::scan_threads}};
    const Buffer<i32> x(host);
    auto y = Buffer<i32>::uninitialised(x.client(), n).value(), totals = Buffer<i32>::uninitialised(x.client(), blocks).value();
    samples::scan_block(config, x, y, totals);
    std::vector<i32> offsets = totals.read().value();
    std::exclusive_scan(offsets.begin(), offsets.end(), offsets.begin(), 0);
    samples::add_offsets(config, Buffer<i32>(offsets), y);
    samples::expect_equal(y.read().value(), want);
    return std::to_string(n) + " elements in " + std::to_string(blocks) + " blocks";
  });
}
