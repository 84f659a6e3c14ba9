// Rows of a table by their numbers: y[i] = table[rows[i]], as an embedding does it.
#pragma once
#include <kiln/kiln.h>

namespace samples {

KILN_DECLARE_KERNEL(gather, (kiln::In<kiln::f32, 2> table, kiln::In<kiln::u32> rows, kiln::Out<kiln::f32, 2> y));

}  // namespace samples
