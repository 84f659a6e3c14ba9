// expect: kiln: an atomic reads and writes. Declare the parameter InOut<T>.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x)) {
  x.atomic_add(0, 1);
}
