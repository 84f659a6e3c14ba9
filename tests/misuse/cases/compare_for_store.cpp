// expect: a comparison gives a bool and changes nothing; y[i] = v stores
#include <kiln/kiln.h>

using namespace kiln;

#pragma GCC diagnostic error "-Wunused-result"

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[0] == x[0];
}
