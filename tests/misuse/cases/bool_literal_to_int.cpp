// expect: kiln: true and false are no numbers in a kernel; write 1 or 0, or cast<T>(condition).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  y[0] = x[0] + true;
}
