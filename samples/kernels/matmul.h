// C = A * B by square tiles in shared memory: a family, one variant per tile size and unrolling.
#pragma once
#include <kiln/kiln.h>

namespace samples {

struct MatmulCfg {
  kiln::u32 tile = 16;   // of a block, in threads and elements along each side
  kiln::u32 unroll = 1;  // products between two tests of the inner loop; 0: no loop at all
};
KILN_CONFIG(MatmulCfg, tile, unroll)

kiln::Space<MatmulCfg> matmul_space();

KILN_DECLARE_KERNEL(matmul, (const MatmulCfg& cfg, kiln::In<kiln::f32, 2> a, kiln::In<kiln::f32, 2> b, kiln::Out<kiln::f32, 2> c));

}  // namespace samples
