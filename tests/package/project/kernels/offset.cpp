#include <kiln/kiln.h>

namespace clash {
using namespace kiln;

KILN_KERNEL(offset, (InOut<i32> y, Val<i32> by))
{
  If (global_id().x < y.size()) { y[global_id().x] += by; }
}

}  // namespace clash
