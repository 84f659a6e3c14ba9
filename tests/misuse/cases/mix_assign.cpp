// expect: kiln: the value has another kernel type than what it is assigned to. There is no implicit conversion: write cast<T>(x) on the right side.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  Var<u32> v = 1;
  v = x[0];
  y[0] = 1;
}
