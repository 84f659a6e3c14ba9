// expect: kiln: a check says what is wrong: check(c, "row {} of {}", r, n); assume(c) takes its text from the condition.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, InOut<u32> y)) {
  check(x[0] < 7);
  y[0] = 1;
}
