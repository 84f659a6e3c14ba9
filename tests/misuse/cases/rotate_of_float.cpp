// expect: kiln: rotate_left needs an integer; bit_cast<u32>(x) gives the bits of a float.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[0] = rotate_left(x[0], 1);
}
