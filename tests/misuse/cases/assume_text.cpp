// expect: kiln: assume takes its text from the condition; check(c, "text") has one of its own.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, InOut<u32> y)) {
  assume(x[0] > 0, "there is one");
  y[0] = 1;
}
