// expect: kiln: the parameters of a kernel stand in parentheses of their own: KILN_KERNEL(name, (In<f32> x, Out<f32> y)) { ... }
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, In<f32> x, InOut<f32> y) {
  y[0] = x[0];
}
