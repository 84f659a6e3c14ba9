// expect: kiln: a Val<T> has a value from the start. Declare Var<T> x; for a local that is assigned later.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  Val<f32> m;
  y[0] = m;
}
