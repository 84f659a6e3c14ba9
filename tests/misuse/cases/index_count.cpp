// expect: kiln: a subscript has one coordinate per dimension: a[i] for rank 1, a[r, c] for rank 2.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<f32, 2> y)) {
  y[0] = 1;
}
