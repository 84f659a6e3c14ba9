// expect: While (c) { }
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  Var<u32> i = 0;
  while (i < x.size()) { i += 1; }
}
