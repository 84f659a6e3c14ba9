// expect: kiln: this is a whole memory, and a value is needed. Write x[i] for one element of it.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[0] = x;
}
