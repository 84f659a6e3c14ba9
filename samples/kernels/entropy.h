// The entropy of a byte histogram, in bits per byte.
#pragma once
#include <kiln/kiln.h>

namespace samples {

// entropy[0] = -sum p log2 p over the 256 bins, with p = count / bytes. One block.
KILN_DECLARE_KERNEL(byte_entropy, (kiln::In<kiln::u32> bins, kiln::Out<kiln::f32> entropy, kiln::Val<kiln::f64> bytes));

}  // namespace samples
