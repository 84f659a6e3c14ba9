// expect: kiln: a Shared is given its extents: Shared<f32> s(256), or Shared<f32, 2> s(16, 16).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<f32> y)) {
  Shared<f32> s;
  y[0] = s[0];
}
