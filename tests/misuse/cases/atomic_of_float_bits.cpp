// expect: kiln: this atomic does not exist for this element type; add, min, max and exchange take integers and floats, the others integers.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  y.atomic_and(0, 1);
}
