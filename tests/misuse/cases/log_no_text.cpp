// expect: kiln: log(x) is the natural logarithm; a line of text for the host is log("x = {}", x). The logarithm needs a float; write cast<f32>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  log(n[0]);
  y[0] = x[0];
}
