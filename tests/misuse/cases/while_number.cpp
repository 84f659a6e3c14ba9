// expect: kiln: While needs a bool; write x != 0 to test a number.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  While (x[0]) { y[0] = 1; }
}
