// expect: kiln: arithmetic and order need numbers, not bool; use && || ! ^ on bool, or cast<T>(x).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<i32> x, InOut<i32> y)) {
  auto c = x[0] > 1, d = x[1] > 2;
  y[0] = cast<i32>(c + d);
}
