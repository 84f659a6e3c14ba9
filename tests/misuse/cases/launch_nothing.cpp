// expect: kiln: a launch needs its configuration before the arguments: k(config, x, y) or k(stream, config, x, y), where config is for_num_elems(n), cover({columns, rows}, block) or {{blocks}, {threads}}.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) { require(true); }

void launch() {
  Buffer<f32> a(std::vector<f32>(3)), b(std::vector<f32>(3));
  k();
}
