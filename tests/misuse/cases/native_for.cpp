// expect: kiln: a kernel value is not known while the kernel is recorded. Use If (c) { }, While (c) { } and for (auto i : range(n)) { } instead of if, while and for, select(c, a, b) instead of c ? a : b.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, InOut<u32> y)) {
  for (u32 i = 0; i < x.size(); ++i) { y[i] = x[i]; }
}
