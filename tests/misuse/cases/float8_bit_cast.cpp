// expect: kiln: bit_cast needs two number types of the same width.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<e4m3> x, InOut<e4m3> y)) {
  y[0] = x[0];
  Val<u16> b = bit_cast<u16>(x[0]);
  (void)b;
}
