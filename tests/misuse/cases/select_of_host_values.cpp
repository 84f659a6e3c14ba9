// expect: kiln: the sides of select are both host values; give the type: select<f32>(c, 1, 0).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  y[0] = select(x[0] > 1, 1, 0);
}
