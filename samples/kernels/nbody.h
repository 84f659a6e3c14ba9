// Gravity among bodies, each with each: a block loads the bodies tile by tile into shared memory.
#pragma once
#include <kiln/kiln.h>

namespace samples {

inline constexpr kiln::u32 nbody_threads = 128;

// Accelerations of the bodies at (x, y, z) with the given masses; `softening` is the square of a distance below which the pull fades.
KILN_DECLARE_KERNEL(nbody, (kiln::In<kiln::f32> x, kiln::In<kiln::f32> y, kiln::In<kiln::f32> z, kiln::In<kiln::f32> mass,
                            kiln::Out<kiln::f32> ax, kiln::Out<kiln::f32> ay, kiln::Out<kiln::f32> az, kiln::Val<kiln::f32> softening));

}  // namespace samples
