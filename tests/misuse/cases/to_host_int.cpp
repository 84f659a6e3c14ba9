// expect: Val<int>
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  int n = x[0];
  y[0] = n;
}
