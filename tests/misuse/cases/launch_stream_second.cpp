// expect: kiln: the stream of a launch comes before its configuration: k(stream, config, x, y).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) { require(true); }

void launch() {
  Buffer<f32> a(std::vector<f32>(3)), b(std::vector<f32>(3));
  k(for_num_elems(3), Client::default_client().stream(), a, b);
}
