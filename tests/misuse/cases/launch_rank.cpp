// expect: kiln: argument 2 of this launch is a buffer of another rank than the kernel's parameter; see Buffer::view.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32, 2> y)) { require(true); }

void launch() {
  Buffer<f32> a(std::vector<f32>(3)), b(std::vector<f32>(3));
  k({{1}, {32}}, a, b);
}
