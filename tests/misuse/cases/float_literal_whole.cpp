// expect: kiln: a floating-point number of the host, 2.0 too, cannot become an integer of the kernel; write an integer, or cast<f32>(x) on the other operand.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, In<i32> n, InOut<f32> y)) {
  y[0] = cast<f32>(n[0] * 2.0);
}
