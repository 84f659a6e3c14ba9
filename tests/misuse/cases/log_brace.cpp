// expect: a_lone_brace_in_a_text_is_written_twice
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  log("x = {}, }", x[0]);
  y[0] = 1;
}
