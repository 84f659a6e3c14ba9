// expect: kiln: the value has another kernel type. There is no implicit conversion: write cast<T>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  Val<u32> v = x[0];
  y[v] = 1;
}
