// expect: kiln: warp::sum needs numbers, not bool.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  y[0] = cast<i32>(warp::sum(x[0] > 1));
}
