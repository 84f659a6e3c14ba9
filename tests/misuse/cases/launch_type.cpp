// expect: kiln: argument 1 of this launch is a buffer of another element type than the kernel's parameter.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) { require(true); }

void launch() {
  Buffer<f64> a(std::vector<f64>(3));
  Buffer<f32> b(std::vector<f32>(3));
  k(for_num_elems(3), a, b);
}
