// One step of diffusion on a grid: a five-point stencil inside, the border copied.
#pragma once
#include <kiln/kiln.h>

namespace samples {

KILN_DECLARE_KERNEL(stencil5, (kiln::In<kiln::f32, 2> src, kiln::Out<kiln::f32, 2> dst, kiln::Val<kiln::f32> k));

}  // namespace samples
