// expect: kiln: memory has rank 1 to 4; the size of a Shared is an argument: Shared<f32> s(256).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<f32> y)) {
  Shared<f32, 256> s;
  y[0] = s[0];
}
