// expect: kiln: the exponent of powi is an i32; write cast<i32>(n), or pow(x, y) for an exponent of the base's type.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[0] = powi(x[0], x[1]);
}
