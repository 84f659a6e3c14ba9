// expect: kiln: this is a whole memory, and a value is needed. Write x[i] for one element of it.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  log("x = {}", x);
  y[0] = 1;
}
