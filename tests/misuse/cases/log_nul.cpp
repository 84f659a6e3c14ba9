// expect: a_text_ends_at_its_first_NUL_and_this_one_goes_on_behind_it
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  log("x\0 = {}", x[0]);
  y[0] = 1;
}
