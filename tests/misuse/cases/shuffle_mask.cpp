// expect: kiln: the mask of warp::shfl_xor is a u32; write cast<u32>(mask).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  Var<u64> mask = 1;
  y[0] = warp::shfl_xor(x[0], mask);
}
