// expect: kiln: a kernel value is not known while the kernel is recorded; cast<T>(x) converts within the kernel.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  int n = static_cast<int>(x[0]);
  y[0] = n;
}
