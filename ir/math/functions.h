// One function each; the sources name their method. All for f32 unless said. Private to ir/math.
#pragma once
#include "math/expr.h"

namespace kiln::ir::math {

V exp32(V x);
V log32(V x);
V sin32(V x);
V cos32(V x);
V tanh32(V x);
V pow32(V x, V y);
V rsqrt32(V x);
V rem32(V x, V y);
V rem64(V x, V y);  // f64

// exp(x + x_low) for -150 < x < 130 (no other values), |x_low| below one unit in the last place of x: the part that exp, tanh and pow
// share.
V exp_core(V x);
V exp_core(V x, V x_low);

}  // namespace kiln::ir::math
