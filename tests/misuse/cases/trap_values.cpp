// expect: kiln: the text of a trap has no values; log("x = {}", x) before it.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, InOut<u32> y)) {
  If (x[0] > 7) { trap("x is {}", x[0]); }
  y[0] = 1;
}
