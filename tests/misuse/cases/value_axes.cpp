// expect: kiln: thread_id(), global_id() and their like are three numbers, one per axis. Write .x, .y or .z for one of them.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<u32> y)) {
  Val<u32> i = thread_id();
  y[i] = 1;
}
