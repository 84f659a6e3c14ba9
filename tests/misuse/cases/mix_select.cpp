// expect: write cast<T>(x)
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  y[0] = select(x[0] > 1, x[0], global_id().x);
}
