// expect: a subscript has one coordinate per dimension
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[0, 1] = 1;
  y[0, 1] += x[0];
}
