// expect: kiln: `auto v = y[i]` names the element, not its value. Write Val<T> v = y[i] to read it, y[i] = v to write it.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  auto v = y[0];
  v = 1;
}
