// Prices of European options by the formula of Black and Scholes.
#pragma once
#include <kiln/kiln.h>

namespace samples {

// `rate` and `volatility` are per year.
KILN_DECLARE_KERNEL(black_scholes,
                    (kiln::In<kiln::f32> price, kiln::In<kiln::f32> strike, kiln::In<kiln::f32> years, kiln::Out<kiln::f32> call,
                     kiln::Out<kiln::f32> put, kiln::Val<kiln::f32> rate, kiln::Val<kiln::f32> volatility));

}  // namespace samples
