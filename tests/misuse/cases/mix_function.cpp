// expect: write cast<T>(x)
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  y[0] = max(x[0], global_id().x);
}
