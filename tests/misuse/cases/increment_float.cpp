// expect: kiln: ++ and -- need an integer; write x += 1.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<f32> y)) {
  Var<f32> v = 0;
  ++v;
  y[0] = v;
}
