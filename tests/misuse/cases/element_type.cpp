// expect: the elements of a kernel's memory are
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<const char*> x)) {
  (void)x;
}
