#include "scan.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(scan_block, (In<i32> x, Out<i32> y, Out<i32> totals))
{
  constexpr u32 threads = scan_threads, warps = threads / warp::size;
  block_size(threads);
  require(y.size() == x.size());
  require(totals.size() == grid_dim().x);
  Shared<i32> sums(warps);
  auto t = thread_id().x, lane = t % warp::size, wid = t / warp::size;
  auto i = global_id().x;
  Var<i32> v = 0;
  If (i < x.size()) { v = x[i]; }
  for (u32 d = 1; d < warp::size; d *= 2) {
    auto up = warp::shfl_up(v, d);  // outside of the branch: every lane takes part
    If (lane >= d) { v += up; }
  }
  If (lane == warp::size - 1) { sums[wid] = v; }
  barrier();
  Var<i32> base = 0;
  for (u32 w = 0; w < warps; ++w) base += select(wid > w, sums[w], 0);
  Val<i32> out = v + base;
  If (i < y.size()) { y[i] = out; }
  If (t == threads - 1) { totals[block_id().x] = out; }
}

KILN_KERNEL(add_offsets, (In<i32> offsets, InOut<i32> y))
{
  block_size(scan_threads);
  require(offsets.size() == grid_dim().x);
  auto i = global_id().x;
  If (i < y.size()) { y[i] += offsets[block_id().x]; }
}

}  // namespace samples
