// expect: Declare it Var<T> x = ... to count with it
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  auto i = global_id().x;
  ++i;
  y[i] = 1;
}
