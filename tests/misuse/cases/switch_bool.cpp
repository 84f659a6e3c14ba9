// expect: kiln: Switch needs an integer; use If for conditions.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  Switch (x[0] > 1) { Case (1) { y[0] = 1; } }
}
