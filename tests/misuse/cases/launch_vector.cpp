// expect: kiln: argument 1 of this launch is not a Buffer, but the kernel's parameter is one.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) { require(true); }

void launch() {
  std::vector<f32> a(3);
  Buffer<f32> b(a);
  k(for_num_elems(3), a, b);
}
