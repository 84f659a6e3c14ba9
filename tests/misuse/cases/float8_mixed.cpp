// expect: kiln: the operands have different kernel types. There is no implicit conversion: write cast<T>(x) on one side.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<e4m3> x, InOut<e4m3> y)) {
  y[0] = cast<e4m3>(cast<f32>(x[0]) + x[1]);
}
