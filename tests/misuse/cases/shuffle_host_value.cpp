// expect: kiln: warp::shfl_up moves a value of the kernel, and this is a host value, the same in every lane.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  y[0] = x[0];
  warp::shfl_up(1.0f, 1);
}
