// expect: log(x) is the natural logarithm; a line of text for the host is log("x = {}", x)
#include <kiln/kiln.h>

#pragma GCC diagnostic error "-Wunused-result"

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  log(x[0]);
  y[0] = x[0];
}
