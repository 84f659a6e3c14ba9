// The transpose of a matrix whose sides are no multiples of a tile.
#include "kernels/transpose.h"

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("transpose", [] {
    const std::size_t rows = 301, columns = 170;
    std::vector<f32> host(rows * columns), want(host.size());
    for (std::size_t r = 0; r < rows; ++r)
      for (std::size_t c = 0; c < columns; ++c) want[c * rows + r] = host[r * columns + c] = static_cast<f32>(r * 1000 + c);
    const auto x = Buffer<f32, 2>(host, {rows, columns});
    auto y = Buffer<f32, 2>::uninitialised(x.client(), columns, rows).value();
    const u32 tile = samples::transpose_tile;
    samples::transpose({{(columns + tile - 1) / tile, (rows + tile - 1) / tile}, {tile, samples::transpose_rows}}, x, y);
    samples::expect_equal(y.read().value(), want);
    return std::to_string(rows) + " x " + std::to_string(columns) + " elements";
  });
}
