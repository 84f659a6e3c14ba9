// expect: kiln: the parameters of a kernel are In, Out, InOut and Val; a config comes first, as const Cfg&.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, Var<f32> n)) {
  (void)x; (void)n;
}
