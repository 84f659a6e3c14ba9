#include "reduce.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(block_sum, (In<f32> x, Out<f32> partial))
{
  constexpr u32 threads = reduce_threads, warps = threads / warp::size;
  block_size(threads);
  require(partial.size() == grid_dim().x);
  Shared<f32> per_warp(warps);
  auto t = thread_id().x;
  Var<f32> s = 0;
  for (auto i : range(global_id().x, x.size(), threads * grid_dim().x)) { s += x[i]; }
  auto of_warp = warp::sum(s);
  If (t % warp::size == 0) { per_warp[t / warp::size] = of_warp; }
  barrier();
  If (t < warp::size) {
    Var<f32> r = 0;
    If (t < warps) { r = per_warp[t]; }
    auto total = warp::sum(r);
    If (t == 0) { partial[block_id().x] = total; }
  }
}

}  // namespace samples
