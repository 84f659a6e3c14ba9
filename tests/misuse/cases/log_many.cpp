// expect: kiln: a log has at most 8 values.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  log("{} {} {} {} {} {} {} {} {}", 1, 2, 3, 4, 5, 6, 7, 8, 9);
  y[0] = 1;
}
