// Rows of a matrix brought to length 1, with what the kernel has to say: text for the host, and what must hold.
#pragma once
#include <kiln/kiln.h>

namespace samples {

KILN_DECLARE_KERNEL(unit_rows, (kiln::In<kiln::f32, 2> x, kiln::Out<kiln::f32, 2> y));

}  // namespace samples
