// expect: kiln: an index must be an integer.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[1.5] = 1;
}
