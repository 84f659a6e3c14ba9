// The steps of an image pipeline: a picture, its brightness, a blur, its edges. Pixels are bytes; in between, brightness is f32 from 0 to
// 255.
#pragma once
#include <kiln/kiln.h>

namespace samples {

// Colours of the Mandelbrot set, `out` with extents (rows, columns, 3). `scale`: the width of a pixel; (left, top): the upper left corner.
KILN_DECLARE_KERNEL(mandelbrot, (kiln::Out<kiln::u8, 3> out, kiln::Val<kiln::f32> left, kiln::Val<kiln::f32> top,
                                 kiln::Val<kiln::f32> scale, kiln::Val<kiln::u32> iterations));

// Brightness as ITU-R BT.601 weighs red, green and blue.
KILN_DECLARE_KERNEL(brightness, (kiln::In<kiln::u8, 3> rgb, kiln::Out<kiln::f32, 2> grey));

// One direction of a blur that can be taken apart: weights.size() is odd, the middle one is the pixel's own; beyond the edge the last pixel
// goes on.
KILN_DECLARE_KERNEL(blur_rows, (kiln::In<kiln::f32, 2> x, kiln::In<kiln::f32> weights, kiln::Out<kiln::f32, 2> y));
KILN_DECLARE_KERNEL(blur_columns, (kiln::In<kiln::f32, 2> x, kiln::In<kiln::f32> weights, kiln::Out<kiln::f32, 2> y));

// The length of the gradient by Sobel's operator, cut at 255.
KILN_DECLARE_KERNEL(sobel, (kiln::In<kiln::f32, 2> x, kiln::Out<kiln::u8, 2> y));

// Rounded to the nearest byte.
KILN_DECLARE_KERNEL(to_bytes, (kiln::In<kiln::f32, 2> x, kiln::Out<kiln::u8, 2> y));

}  // namespace samples
