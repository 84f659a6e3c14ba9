// expect: kiln: sqrt needs a float; write cast<f32>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  y[0] = sqrt(x[0]);
}
