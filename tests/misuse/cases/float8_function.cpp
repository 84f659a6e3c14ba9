// expect: kiln: e4m3 and e5m2 are stored, moved and converted only; write cast<f32>(x) first, and cast<e4m3>(y) to store the result.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<e4m3> x, InOut<e4m3> y)) {
  y[0] = exp(x[0]);
}
