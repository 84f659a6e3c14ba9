// expect: kiln: the base of powi is a host value; give its type: powi(Val<f32>(2), n).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<f32> y)) {
  y[0] = powi(2.0f, x[0]);
}
