#include <kiln/kiln.h>

namespace {
using namespace kiln;

// The sum of each block of 64.
KILN_KERNEL(block_sums, (In<f32> x, Out<f32> sums))
{
  block_size(64);
  auto i = global_id().x;
  Var<f32> mine = 0;
  If (i < x.size()) { mine = x[i]; }
  Shared<f32, 1> parts(2);
  auto in_warp = warp::sum(mine);
  If (thread_id().x % 32 == 0) { parts[thread_id().x / 32] = in_warp; }
  barrier();
  If (thread_id().x == 0) { sums[block_id().x] = parts[0] + parts[1]; }
}

}  // namespace
