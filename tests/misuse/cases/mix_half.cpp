// expect: kiln: the operands have different kernel types. There is no implicit conversion: write cast<T>(x) on one side.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f16> x, In<bf16> z, InOut<f16> y)) {
  y[0] = x[0] + z[0];
}
