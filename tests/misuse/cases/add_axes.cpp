// expect: kiln: thread_id(), global_id() and their like are three numbers, one per axis. Write .x, .y or .z for one of them.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<u32> y)) {
  y[0] = thread_id() + 1;
}
