#include "softmax.h"

#include <limits>

#include "block_reduce.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(softmax, (In<f32, 2> x, Out<f32, 2> y))
{
  constexpr u32 threads = softmax_threads;
  block_size(threads);
  require(grid_dim().x == x.extent(0));
  require(y.extent(0) == x.extent(0));
  require(y.extent(1) == x.extent(1));
  Shared<f32> per_warp(threads / warp::size);
  auto row = block_id().x, t = thread_id().x, columns = x.extent(1);
  Var<f32> largest = -std::numeric_limits<f32>::infinity();
  for (auto c : range(t, columns, threads)) { largest = max(largest, x[row, c]); }
  auto top = block_max_of<threads, f32>(largest, per_warp);
  Var<f32> sum = 0;
  for (auto c : range(t, columns, threads)) { sum += exp(x[row, c] - top); }
  auto total = block_sum_of<threads, f32>(sum, per_warp);
  for (auto c : range(t, columns, threads)) { y[row, c] = exp(x[row, c] - top) / total; }
}

}  // namespace samples
