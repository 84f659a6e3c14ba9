// expect: kiln: an index must be an integer, of the kernel or of the host; write static_cast<u32>(x) for an enumerator.
#include <kiln/kiln.h>

using namespace kiln;

KILN_KERNEL(k, (In<f32> x, InOut<f32> y)) {
  enum Place { first };
  y[first] = x[0];
}
