// expect: operator[]
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  auto i = global_id().x;
  static int t[4];
  y[i] = t[i];
}
