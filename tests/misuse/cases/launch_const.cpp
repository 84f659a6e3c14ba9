// expect: kiln: argument 2 of this launch is const or a temporary, but the kernel writes it.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) { require(true); }

void launch() {
  const Buffer<f32> a(std::vector<f32>(3)), b(std::vector<f32>(3));
  k({{1}, {32}}, a, b);
}
