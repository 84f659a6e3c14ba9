// expect: kiln: a check has at most 2 values.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  check(x[0] < 7, "{} {} {}", x[0], x[1], x[2]);
  y[0] = 1;
}
