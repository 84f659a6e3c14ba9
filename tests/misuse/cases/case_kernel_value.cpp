// expect: kiln: the labels of Case are host integers; use If to compare with a kernel value.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  Switch (x[0]) { Case (x[1]) { y[0] = 1; } }
}
