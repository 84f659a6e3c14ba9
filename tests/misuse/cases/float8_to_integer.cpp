// expect: kiln: e4m3 and e5m2 convert from and to floats only; write cast<T>(cast<f32>(x)).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<e4m3> x, InOut<e4m3> y)) {
  Val<i32> i = cast<i32>(x[0]);
  y[i] = x[0];
}
