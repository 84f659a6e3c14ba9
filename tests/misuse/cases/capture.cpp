// expect: kiln: the body of a kernel captures nothing: a host value that decides about the code is a member of the config, one that does not is a Val.
#include <kiln/kiln.h>

using namespace kiln;

void f(float a) {
  (void)record("k", [a](Out<f32> y) { y[0] = a; });
}
