// expect: kiln: a value in a text is a value of the kernel, or a host number or bool of an element type.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<u32> x, Out<u32> y)) {
  log("x = {}", "words");
  y[0] = 1;
}
