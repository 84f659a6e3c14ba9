// expect: kiln: thread_id(), global_id() and their like are three numbers, one per axis. Write .x, .y or .z for one of them.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  auto i = global_id();
  y[i.x] = x[i];
}
