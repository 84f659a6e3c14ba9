// expect: a_place_in_a_text_is_braces_with_nothing_or_a_format_spec_in_them
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  log("x = {:zz}", x[0]);
  y[0] = 1;
}
