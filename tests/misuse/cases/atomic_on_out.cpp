// expect: kiln: an atomic reads and writes. Declare the parameter InOut<T>.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (Out<u32> x)) {
  x.atomic_cas(0, 1, 2);
}
