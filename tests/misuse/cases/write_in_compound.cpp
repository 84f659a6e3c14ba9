// expect: kiln: this is a value, not a place: an In<T> is read-only. Declare the parameter InOut<T> or Out<T>.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  x[0] += 1;
  y[0] = 2;
}
