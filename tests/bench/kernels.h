// The kernels that are measured.
#pragma once
#include <kiln/kiln.h>

namespace kiln::bench {

struct MatmulConfig {
  u32 tile = 16;
};
KILN_CONFIG(MatmulConfig, tile);

KILN_DECLARE_KERNEL(empty, ());
KILN_DECLARE_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a));
KILN_DECLARE_KERNEL(stencil5, (In<f32, 2> in, Out<f32, 2> out, Val<f32> k));
KILN_DECLARE_KERNEL(matmul, (const MatmulConfig& config, In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c));
// The sum of each block's part, one element a block; the grid walks over x.
KILN_DECLARE_KERNEL(block_sum, (In<f32> x, Out<f32> sums));
KILN_DECLARE_KERNEL(histogram, (In<u32> x, InOut<u32> bins));

}  // namespace kiln::bench
