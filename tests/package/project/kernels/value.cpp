#include <kiln/kiln.h>

namespace clash {
using namespace kiln;

KILN_KERNEL(value, (Out<i32> y))
{
  If (global_id().x < y.size()) { y[global_id().x] = VALUE; }
}

}  // namespace clash
