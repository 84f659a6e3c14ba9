// expect: a launch needs its configuration before the arguments
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) { require(true); }

void launch() {
  Buffer<f32> a(std::vector<f32>(3)), b(std::vector<f32>(3));
  k();
}
