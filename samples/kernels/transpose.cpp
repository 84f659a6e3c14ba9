#include "transpose.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(transpose, (In<f32, 2> x, Out<f32, 2> y))
{
  constexpr u32 tile = transpose_tile, rows = transpose_rows;
  block_size(tile, rows);
  require(y.extent(0) == x.extent(1));
  require(y.extent(1) == x.extent(0));
  Shared<f32, 2> part(tile, tile + 1);  // one column more, so that a column's elements lie in different banks
  auto t = thread_id(), block = block_id();
  for (u32 k = 0; k < tile; k += rows) {
    auto row = block.y * tile + t.y + k, column = block.x * tile + t.x;
    If (row < x.extent(0) && column < x.extent(1)) { part[t.y + k, t.x] = x[row, column]; }
  }
  barrier();
  for (u32 k = 0; k < tile; k += rows) {
    auto row = block.x * tile + t.y + k, column = block.y * tile + t.x;
    If (row < y.extent(0) && column < y.extent(1)) { y[row, column] = part[t.x, t.y + k]; }
  }
}

}  // namespace samples
