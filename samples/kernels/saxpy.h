// y = a * x + y.
#pragma once
#include <kiln/kiln.h>

namespace samples {

KILN_DECLARE_KERNEL(saxpy, (kiln::In<kiln::f32> x, kiln::InOut<kiln::f32> y, kiln::Val<kiln::f32> a));

}  // namespace samples
