// expect: the body of a kernel captures nothing
#include <kiln/kiln.h>

using namespace kiln;

void f(float a) {
  (void)record("k", [a](Out<f32> y) { y[0] = a; });
}
