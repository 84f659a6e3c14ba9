// expect: kiln: the distance of warp::shfl_down is a u32; write cast<u32>(distance).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  y[0] = warp::shfl_down(x[0], n[0]);
}
