#include "layer_norm.h"

#include "block_reduce.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(layer_norm, (In<f32, 2> x, In<f32> scale, In<f32> offset, Out<f32, 2> y, Val<f32> epsilon))
{
  constexpr u32 threads = layer_norm_threads;
  block_size(threads);
  require(grid_dim().x == x.extent(0));
  require(y.extent(0) == x.extent(0));
  require(y.extent(1) == x.extent(1));
  require(scale.size() == x.extent(1));
  require(offset.size() == x.extent(1));
  Shared<f32> per_warp(threads / warp::size);
  auto row = block_id().x, t = thread_id().x, columns = x.extent(1);
  auto count = cast<f32>(columns);
  Var<f32> sum = 0;
  for (auto c : range(t, columns, threads)) { sum += x[row, c]; }
  auto mean = block_sum_of<threads, f32>(sum, per_warp) / count;
  // The mean first: squares of the values themselves would cancel where it is large.
  Var<f32> squares = 0;
  for (auto c : range(t, columns, threads)) {
    Val<f32> d = x[row, c] - mean;
    squares += d * d;
  }
  auto factor = rsqrt(block_sum_of<threads, f32>(squares, per_warp) / count + epsilon);
  for (auto c : range(t, columns, threads)) { y[row, c] = (x[row, c] - mean) * factor * scale[c] + offset[c]; }
}

}  // namespace samples
