#include "unit_rows.h"

using namespace kiln;

namespace samples {

// A thread a row.
KILN_KERNEL(unit_rows, (In<f32, 2> x, Out<f32, 2> y))
{
  require(x.extent(0) == y.extent(0) && x.extent(1) == y.extent(1));
  auto r = global_id().x;
  If (r < y.extent(0)) {
    Var<f32> squares = 0;
    for (auto c : range(x.extent(1))) { squares += x[r, c] * x[r, c]; }
    // A row of infinite length has no direction: the launch fails, with this text.
    check(is_finite(squares), "the squares of row {} add up to {}", r, squares);
    // One of length 0 has none either: it stays what it is, and the host is told.
    If (squares == 0) { log("row {} of {} is all zeros", r, x.extent(0)); }
    Val<f32> by = select(squares == 0, 0, 1 / sqrt(squares));
    for (auto c : range(y.extent(1))) { y[r, c] = x[r, c] * by; }
  }
}

}  // namespace samples
