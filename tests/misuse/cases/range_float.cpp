// expect: kiln: range counts in integers; write cast<u32>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  for (auto i : range(x[0])) { y[0] = 1; }
}
