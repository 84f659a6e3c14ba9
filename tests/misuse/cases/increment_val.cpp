// expect: kiln: a Val<T> is an immutable value. Declare it Var<T> x = ... to count with it inside a kernel.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  auto i = global_id().x;
  ++i;
  y[i] = 1;
}
