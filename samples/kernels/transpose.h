// The transpose of a matrix through tiles in shared memory, so that both sides are read and written side by side.
#pragma once
#include <kiln/kiln.h>

namespace samples {

inline constexpr kiln::u32 transpose_tile = 32, transpose_rows = 8;  // a block has 32 x 8 threads and moves 32 x 32 elements

KILN_DECLARE_KERNEL(transpose, (kiln::In<kiln::f32, 2> x, kiln::Out<kiln::f32, 2> y));

}  // namespace samples
