// expect: a_text_has_as_many_places_as_values_behind_it
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  check(x[0] < 7, "x is too much", x[0]);
  y[0] = 1;
}
