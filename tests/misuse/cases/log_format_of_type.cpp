// expect: this_format_is_not_for_a_value_of_that_type
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  log("x = {:.2f}", x[0]);
  y[0] = 1;
}
