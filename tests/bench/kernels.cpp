#include "kernels.h"

namespace kiln::bench {

KILN_KERNEL(empty, ()) {}

}  // namespace kiln::bench
