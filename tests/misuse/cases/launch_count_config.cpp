// expect: kiln: this launch has 3 arguments, and the kernel takes 2 (a config does not count).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) { require(true); }

void launch() {
  Buffer<f32> a(std::vector<f32>(3));
  k(Client::default_client().stream(), {{1}, {32}}, a, a, 3);
}
