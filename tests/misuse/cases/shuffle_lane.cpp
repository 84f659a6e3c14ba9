// expect: kiln: the lane of warp::shfl_idx is a u32; write cast<u32>(lane).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  Val<i32> lane = n[0];
  y[0] = warp::shfl_idx(x[0], lane);
}
