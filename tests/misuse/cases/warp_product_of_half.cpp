// expect: kiln: warp::product needs numbers, and none of f16 or bf16: cast<f32>(x), and back.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f16> x, InOut<f16> y)) {
  y[0] = warp::product(x[0]);
}
