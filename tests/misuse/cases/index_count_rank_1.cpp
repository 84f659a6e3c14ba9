// expect: kiln: a subscript has one coordinate per dimension: a[i] for rank 1, a[r, c] for rank 2.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[0, 1] = 1;
  y[0, 1] += x[0];
}
