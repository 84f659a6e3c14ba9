// expect: kiln: an index must be an integer; write cast<u32>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<e4m3> x, InOut<e4m3> y)) {
  y[x[0]] = x[0];
}
