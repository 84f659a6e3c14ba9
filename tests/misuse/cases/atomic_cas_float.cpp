// expect: kiln: atomic_cas compares bits and takes integers.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y.atomic_cas(0, 1, 2);
}
