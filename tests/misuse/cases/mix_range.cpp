// expect: kiln: the operands of range have different kernel types. There is no implicit conversion: write cast<T>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  for (auto i : range(x[0], x.size())) { y[i] = 1; }
}
