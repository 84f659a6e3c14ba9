// expect: kiln: a Local<T, N> has at least one element.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<i32> y)) {
  Local<i32, 0> l;
  y[0] = 1;
}
