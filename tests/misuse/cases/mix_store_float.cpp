// expect: kiln: the value has another kernel type than what it is assigned to. There is no implicit conversion: write cast<T>(x) on the right side.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f64> x, InOut<f32> y)) {
  auto i = global_id().x;
  y[i] = x[i];
}
