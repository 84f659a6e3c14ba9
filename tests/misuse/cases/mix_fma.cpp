// expect: kiln: the operands have different kernel types. There is no implicit conversion: write cast<T>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<f64> d, InOut<f32> y)) {
  y[0] = fma(x[0], x[1], d[0]);
}
