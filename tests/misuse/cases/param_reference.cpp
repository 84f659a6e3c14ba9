// expect: kiln: a kernel takes its parameters by value: In<f32> x, not In<f32>& x.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32>& x, InOut<f32> y)) {
  y[0] = x[0];
}
