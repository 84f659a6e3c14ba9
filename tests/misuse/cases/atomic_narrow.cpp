// expect: kiln: atomics work on elements of 32 and 64 bits; keep the shared value in an i32 or u32.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u8> x, InOut<u8> y)) {
  y.atomic_add(0, 1);
}
