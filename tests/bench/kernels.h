// The kernels that are measured: the samples', and one that does nothing.
#pragma once
#include <kiln/kiln.h>

#include "samples/kernels/histogram.h"
#include "samples/kernels/matmul.h"
#include "samples/kernels/reduce.h"
#include "samples/kernels/saxpy.h"
#include "samples/kernels/stencil.h"

namespace kiln::bench {

KILN_DECLARE_KERNEL(empty, ());

}  // namespace kiln::bench
