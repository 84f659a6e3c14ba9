// expect: kiln: bit_cast needs two number types of the same width.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y[0] = bit_cast<f32>(cast<u64>(x.size()));
}
