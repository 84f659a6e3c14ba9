// expect: kiln: a bool is needed here; write x != 0 to test a number.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, InOut<u32> y)) {
  y[0] = select(x[0], x[1], 0);
}
