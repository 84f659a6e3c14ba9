// expect: three numbers, one per axis. Write .x, .y or .z
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<u32> y)) {
  y[0] = thread_id();
}
