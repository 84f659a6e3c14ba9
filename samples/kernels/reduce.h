// Sums: each block of 256 threads adds up its share of x into one element of `partial`.
#pragma once
#include <kiln/kiln.h>

namespace samples {

inline constexpr kiln::u32 reduce_threads = 256;

KILN_DECLARE_KERNEL(block_sum, (kiln::In<kiln::f32> x, kiln::Out<kiln::f32> partial));

}  // namespace samples
