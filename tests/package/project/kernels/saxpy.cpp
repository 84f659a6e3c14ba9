// example: kernel
#include <kiln/kiln.h>

namespace demo {
using namespace kiln;

KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}

}  // namespace demo
// end
