// Histograms: counts of keys below 64, and of the bytes of a file seen as words.
#pragma once
#include <kiln/kiln.h>

namespace samples {

inline constexpr kiln::u32 histogram_bins = 64, byte_bins = 256;

// bins[k] += how often k occurs among the keys; keys of 64 and above are not counted.
KILN_DECLARE_KERNEL(histogram, (kiln::In<kiln::u32> keys, kiln::InOut<kiln::u32> bins));
// bins[b] += how often byte b occurs in the words.
KILN_DECLARE_KERNEL(byte_histogram, (kiln::In<kiln::u32> words, kiln::InOut<kiln::u32> bins));

}  // namespace samples
