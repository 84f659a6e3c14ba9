// expect: kiln: a kernel value is not known while the kernel is recorded, and the host cannot print it. log("x = {}", x) tells the host when the kernel runs.
#include <kiln/kiln.h>

#include <iostream>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x)) {
  std::cout << x[0];
}
