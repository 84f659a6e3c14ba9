// The kernels that are measured: the samples', one that does nothing, and two of any size.
#pragma once
#include <kiln/kiln.h>

#include "samples/kernels/histogram.h"
#include "samples/kernels/matmul.h"
#include "samples/kernels/reduce.h"
#include "samples/kernels/saxpy.h"
#include "samples/kernels/stencil.h"

namespace kiln::bench {

KILN_DECLARE_KERNEL(empty, ());

struct Size {
  u32 count = 100;  // of branches or statements, written out by a loop of C++
};
KILN_CONFIG(Size, count)
KILN_DECLARE_KERNEL(guarded_ifs, (const Size& size, In<f32> x, InOut<f32> y));
KILN_DECLARE_KERNEL(statements, (const Size& size, In<f32> x, InOut<f32> y));

// One function of every element.
KILN_DECLARE_KERNEL(map_exp, (In<f32> x, Out<f32> y));
KILN_DECLARE_KERNEL(map_log, (In<f32> x, Out<f32> y));
KILN_DECLARE_KERNEL(map_sin, (In<f32> x, Out<f32> y));
KILN_DECLARE_KERNEL(map_tanh, (In<f32> x, Out<f32> y));

}  // namespace kiln::bench
