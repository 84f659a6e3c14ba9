// expect: kiln: an argument of this launch after the 16th does not fit the kernel's parameter.
#include <kiln/kiln.h>

using namespace kiln;

using V = Val<u8>;
KILN_KERNEL(k, (InOut<i32> y, V a, V b, V c, V d, V e, V f, V g, V h, V i, V j, V l, V m, V n, V o, V p, V q)) {
  y[0] = cast<i32>(a + b + c + d + e + f + g + h + i + j + l + m + n + o + p + q);
}

void launch(Buffer<i32>& y) {
  k({{1}, {1}}, y, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 1.5);
}
