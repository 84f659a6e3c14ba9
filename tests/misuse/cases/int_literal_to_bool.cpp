// expect: kiln: a kernel bool takes only true, false and comparisons; write x != 0 to test a number.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<bool> b)) {
  b[0] = 1;
}
