// Kernels that do not record, or are none: a library that cannot be run, from which the command line takes its errors.
#include <kiln/kiln.h>

namespace cli_broken {
using namespace kiln;

KILN_KERNEL(leaves, (Out<f32> y))
{
  If (global_id().x < y.size()) { return; }
  y[0] = 1;
}

KILN_KERNEL(divergent, (Out<f32> y))
{
  If (thread_id().x == 0) { barrier(); }
  y[0] = 1;
}

}  // namespace cli_broken
