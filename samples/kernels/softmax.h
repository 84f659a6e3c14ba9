// The softmax of each row of a matrix: a block a row, in three passes over it.
#pragma once
#include <kiln/kiln.h>

namespace samples {

inline constexpr kiln::u32 softmax_threads = 256;

KILN_DECLARE_KERNEL(softmax, (kiln::In<kiln::f32, 2> x, kiln::Out<kiln::f32, 2> y));

}  // namespace samples
