// expect: kiln: memory has rank 1 to 4; the size of a Shared is an argument: Shared<f32> s(256).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32, 5> x)) {
  (void)x;
}
