// expect: kiln: this is a whole memory, and a value is needed. Write x[i] for one element of it.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  Shared<f32> tile(4);
  Val<f32> v = tile;
  y[0] = v;
}
