// expect: kiln: a kernel value has no address; pass it by value, or a Var by reference.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  auto i = global_id().x;
  auto* p = &i;
  y[i] = x[*p];
}
