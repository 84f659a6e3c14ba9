// expect: kiln: an Out<T> is only written. Declare the parameter InOut<T> to read it too.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (Out<f32> y)) {
  y[0] += 1;
}
