// expect: kiln: thread_id(), global_id() and their like are three numbers, one per axis. Write .x, .y or .z for one of them.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<f32, 2> y)) {
  auto i = global_id();
  y[i, 0] = 1;
}
