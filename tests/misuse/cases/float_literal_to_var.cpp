// expect: kiln: a floating-point number of the host, 2.0 too, cannot become an integer of the kernel; write an integer, or cast<f32>(x) on the other operand.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  Var<i32> v = 0.5;
  y[0] = v;
}
