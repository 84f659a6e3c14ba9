// expect: a literal with a fraction cannot become an integer
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  Var<i32> v = 0.5;
  y[0] = v;
}
