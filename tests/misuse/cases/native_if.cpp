// expect: If (c) { }
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  auto i = global_id().x;
  if (i < x.size()) { y[i] = x[i]; }
}
