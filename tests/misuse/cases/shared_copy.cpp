// expect: deleted
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  Shared<f32> s(4);
  auto t = s;
  y[0] = t[0];
}
