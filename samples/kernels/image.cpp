#include "image.h"

using namespace kiln;

namespace samples {
namespace {

// Row and column of the thread, and whether they lie within.
struct Pixel {
  Val<u32> row, column;
  Val<bool> inside(Val<u32> rows, Val<u32> columns) const { return row < rows && column < columns; }
};
Pixel pixel() {
  auto id = global_id();
  return {id.y, id.x};
}

Val<u8> byte_of(Val<f32> v) { return cast<u8>(round_even(v)); }

// The index `ahead` - `behind` away, within 0 ... n - 1. Unsigned all the way, so that it is proven to lie there.
Val<u32> near(Val<u32> i, Val<u32> ahead, Val<u32> behind, Val<u32> n) {
  auto at = max(i + ahead, behind) - behind;
  return min(at, n - 1);
}

// The sum over the weights, from first to last, of pixels along one direction.
template <class At>
Val<f32> weighted(const In<f32>& weights, At at) {
  auto half = weights.size() / 2;
  Var<f32> sum = 0;
  for (auto k : range(0, weights.size())) { sum = fma(weights[k], at(k, half), Val<f32>(sum)); }
  return sum;
}

}  // namespace

KILN_KERNEL(mandelbrot, (Out<u8, 3> out, Val<f32> left, Val<f32> top, Val<f32> scale, Val<u32> iterations))
{
  require(out.extent(2) == 3);
  auto p = pixel();
  If (p.inside(out.extent(0), out.extent(1))) {
    auto cr = fma(cast<f32>(p.column), scale, left), ci = fma(cast<f32>(p.row), scale, top);
    Var<f32> zr = 0, zi = 0, rr = 0, ii = 0;
    Var<u32> n = 0;
    While (n < iterations && rr + ii <= 4.0f) {
      Val<f32> next = fma(2.0f * zr, zi, ci);
      zr = rr - ii + cr;
      zi = next;
      rr = zr * zr;
      ii = zi * zi;
      n += 1;
    }
    Val<u32> shade = select(n == iterations, 0u, n);
    out[p.row, p.column, 0] = cast<u8>(shade * 9);
    out[p.row, p.column, 1] = cast<u8>(shade * 5);
    out[p.row, p.column, 2] = cast<u8>(shade * 13);
  }
}

KILN_KERNEL(brightness, (In<u8, 3> rgb, Out<f32, 2> grey))
{
  require(rgb.extent(0) == grey.extent(0));
  require(rgb.extent(1) == grey.extent(1));
  require(rgb.extent(2) == 3);
  auto p = pixel();
  If (p.inside(grey.extent(0), grey.extent(1))) {
    auto channel = [&](u32 c) { return cast<f32>(rgb[p.row, p.column, c]); };
    auto red = channel(0), green = channel(1), blue = channel(2);
    grey[p.row, p.column] = fma(0.114f, blue, fma(0.587f, green, 0.299f * red));
  }
}

KILN_KERNEL(blur_rows, (In<f32, 2> x, In<f32> weights, Out<f32, 2> y))
{
  require(y.extent(0) == x.extent(0));
  require(y.extent(1) == x.extent(1));
  auto p = pixel();
  auto columns = x.extent(1);
  If (p.inside(x.extent(0), columns)) {
    y[p.row, p.column] = weighted(weights, [&](Val<u32> k, Val<u32> half) { return Val<f32>(x[p.row, near(p.column, k, half, columns)]); });
  }
}

KILN_KERNEL(blur_columns, (In<f32, 2> x, In<f32> weights, Out<f32, 2> y))
{
  require(y.extent(0) == x.extent(0));
  require(y.extent(1) == x.extent(1));
  auto p = pixel();
  auto rows = x.extent(0);
  If (p.inside(rows, x.extent(1))) {
    y[p.row, p.column] = weighted(weights, [&](Val<u32> k, Val<u32> half) { return Val<f32>(x[near(p.row, k, half, rows), p.column]); });
  }
}

KILN_KERNEL(sobel, (In<f32, 2> x, Out<u8, 2> y))
{
  require(y.extent(0) == x.extent(0));
  require(y.extent(1) == x.extent(1));
  auto p = pixel();
  auto rows = x.extent(0), columns = x.extent(1);
  If (p.inside(rows, columns)) {
    auto at = [&](i32 down, i32 right) {
      return Val<f32>(x[near(p.row, static_cast<u32>(down + 1), 1, rows), near(p.column, static_cast<u32>(right + 1), 1, columns)]);
    };
    // Six differences of neighbours on either side; a pixel more than once costs nothing, since equal loads become one.
    auto across = (at(-1, 1) - at(-1, -1)) + 2.0f * (at(0, 1) - at(0, -1)) + (at(1, 1) - at(1, -1));
    auto down = (at(1, -1) - at(-1, -1)) + 2.0f * (at(1, 0) - at(-1, 0)) + (at(1, 1) - at(-1, 1));
    y[p.row, p.column] = byte_of(min(sqrt(across * across + down * down), 255.0f));
  }
}

KILN_KERNEL(to_bytes, (In<f32, 2> x, Out<u8, 2> y))
{
  require(y.extent(0) == x.extent(0));
  require(y.extent(1) == x.extent(1));
  auto p = pixel();
  If (p.inside(x.extent(0), x.extent(1))) { y[p.row, p.column] = byte_of(x[p.row, p.column]); }
}

}  // namespace samples
