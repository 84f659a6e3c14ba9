// expect: a subscript has one coordinate per dimension
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<f32, 2> y)) {
  y[0] = 1;
}
