// expect: kiln: a kernel value is not known while the kernel is recorded. Use If (c) { }, While (c) { } and for (auto i : range(n)) { } instead of if, while and for, select(c, a, b) instead of c ? a : b.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  auto i = global_id().x;
  Val<f32> v = i < 3 ? x[i] : x[i + 1];
  y[i] = v;
}
