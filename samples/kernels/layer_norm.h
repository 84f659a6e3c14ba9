// Each row of a matrix with its mean taken away and divided by its deviation, then scaled and moved by column: a block a row.
#pragma once
#include <kiln/kiln.h>

namespace samples {

inline constexpr kiln::u32 layer_norm_threads = 256;

KILN_DECLARE_KERNEL(layer_norm, (kiln::In<kiln::f32, 2> x, kiln::In<kiln::f32> scale, kiln::In<kiln::f32> offset, kiln::Out<kiln::f32, 2> y,
                                 kiln::Val<kiln::f32> epsilon));

}  // namespace samples
