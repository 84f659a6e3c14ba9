#include "gather.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(gather, (In<f32, 2> table, In<u32> rows, Out<f32, 2> y))
{
  require(y.extent(0) == rows.size());
  require(y.extent(1) == table.extent(1));
  auto column = global_id().x, i = global_id().y;
  // A row number comes from memory, so only this access is tested when the kernel runs.
  If (i < rows.size() && column < y.extent(1)) { y[i, column] = table[rows[i], column]; }
}

}  // namespace samples
