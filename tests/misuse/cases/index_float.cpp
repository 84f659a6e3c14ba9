// expect: kiln: an index must be an integer; write cast<u32>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[x[0]] = 1;
}
