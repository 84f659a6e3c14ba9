// expect: a kernel bool takes only true, false and comparisons
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<bool> b)) {
  b[0] = 1;
}
