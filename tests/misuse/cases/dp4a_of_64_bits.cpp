// expect: kiln: dp4a needs i32 or u32, whose four bytes it multiplies.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u64> x, InOut<u64> y)) {
  y[0] = dp4a(x[0], x[1], x[2]);
}
