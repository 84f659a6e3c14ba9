// expect: kiln: the extents of Shared are host integers. For a size known at launch use DynamicShared<T>.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  Shared<f32> s(x.size());
  y[0] = s[0];
}
