// expect: atomics work on elements of 32 and 64 bits
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u8> x, InOut<u8> y)) {
  y.atomic_add(0, 1);
}
