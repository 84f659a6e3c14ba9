// expect: kiln: a Val<T> is an immutable value. Declare it Var<T> x = ... to assign to it inside a kernel.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  auto m = x[0];
  If (m > 3) { m = 3; }
  y[0] = m;
}
