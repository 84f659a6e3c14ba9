// expect: three numbers, one per axis. Write .x, .y or .z
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<f32, 2> y)) {
  auto i = global_id();
  y[i, 0] = 1;
}
