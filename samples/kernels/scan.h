// Inclusive scan of each block's 128 elements; the blocks' totals go out for a second pass.
#pragma once
#include <kiln/kiln.h>

namespace samples {

inline constexpr kiln::u32 scan_threads = 128;

KILN_DECLARE_KERNEL(scan_block, (kiln::In<kiln::i32> x, kiln::Out<kiln::i32> y, kiln::Out<kiln::i32> totals));
// y[i] += offsets[block of i]: the second pass, with offsets[b] the sum of the totals before block b.
KILN_DECLARE_KERNEL(add_offsets, (kiln::In<kiln::i32> offsets, kiln::InOut<kiln::i32> y));

}  // namespace samples
