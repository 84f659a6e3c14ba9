// expect: kiln: the operands have different kernel types. There is no implicit conversion: write cast<T>(x) on one side.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  auto i = global_id().x;
  If (x[i] < i) { y[i] = 1; }
}
