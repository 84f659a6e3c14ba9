// expect: kiln: the launch has another number of arguments than the kernel has parameters (a config does not count).
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (InOut<i32> y, Val<u8> a)) { y[0] = cast<i32>(a); }

void launch(Buffer<i32>& y) {
  k({{1}, {1}}, y, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13);
}
