// The examples of docs/language/heads.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_heads {

// example: heads
KILN_KERNEL(blur_rows, (In<f32, 2> x, Out<f32, 2> y, Val<u32> reach))
{
  block_size(32, 4);  // every launch has exactly this block
  require(x.extent(0) == y.extent(0) && x.extent(1) == y.extent(1));
  require(reach < 16, "the reach of the blur is below 16");
  auto [c, r, z] = global_id();
  If (r < y.extent(0) && c < y.extent(1)) {
    Var<f32> sum = 0;
    Val<u32> first = c - min(c, reach), last = min(c + reach, y.extent(1) - 1);
    for (auto k : range(first, last + 1)) { sum += x[r, k]; }
    y[r, c] = sum / cast<f32>(last + 1 - first);
  }
}
// end

// example: max threads
KILN_KERNEL(fill, (Out<f32> y, Val<f32> v))
{
  max_threads(256);  // any block of up to 256 threads
  auto i = global_id().x;
  If (i < y.size()) { y[i] = v; }
}
// end

// example: in place
KILN_KERNEL(scale, (In<f32> x, Out<f32> y, Val<f32> a))
{
  in_place(y, x);  // these two may be the same memory
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i]; }
}
// end

// example: options
KILN_KERNEL(products, (In<f32> x, Out<f32> y))
{
  options({.contraction = false});  // a * b + c stays two operations
  require(x.size() >= 3);
  y[0] = x[0] * x[1] + x[2];
}
// end

// example: fast math
KILN_KERNEL(logistic, (In<f32> x, Out<f32> y))
{
  options({.fast_math = true});
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = 1 / (1 + exp(-x[i])); }
}
// end

// example: late
KILN_KERNEL(late, (In<f32> x, Out<f32> y))
{
  y[0] = x[0];
  require(x.size() > 0);
}
// end

}  // namespace docs_heads

TEST_CASE("docs/language/heads") {
  check_example<f32>(docs_heads::blur_rows, {{1}, {32, 4}},
                     {buffer<f32>({1, 2, 3, 4, 4, 4}, {2, 3}), buffer(std::vector<f32>(6), {2, 3}), scalar<u32>(1)}, 1,
                     {1.5f, 2, 2.5f, 4, 4, 4});
  check_example<f32>(docs_heads::fill, {{2}, {256}}, {filled<f32>(300, 0), scalar<f32>(7)}, 0, std::vector<f32>(300, 7));
  check_example<f32>(docs_heads::scale, {{1}, {3}}, {buffer<f32>({1, 2, 3}), filled<f32>(3, 0), scalar<f32>(2)}, 1, {2, 4, 6});
  check_example<f32>(docs_heads::logistic, {{1}, {3}}, {buffer<f32>({0, 80, -1000}), filled<f32>(3, 9)}, 1, {0.5f, 1, 0});
  // (1 + 2^-12)^2 - (1 + 2^-11) is 2^-24, which a product that is rounded loses.
  const f32 a = 1 + 0x1p-12f;
  check_example<f32>(docs_heads::products, {{1}, {1}}, {buffer<f32>({a, a, -(1 + 0x1p-11f)}), filled<f32>(1, 9)}, 1, {0});
}

TEST_CASE("docs/language/heads: what is refused") {
  using docs_heads::scale;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto x = Buffer<f32, 2>::zeroed(client, 8, 8).value();
    auto y = Buffer<f32, 2>::zeroed(client, 8, 8).value(), small = Buffer<f32, 2>::zeroed(client, 8, 4).value();
    check_text("block_shape", docs_heads::blur_rows({{1}, {64, 2}}, x, y, 1).error().text());
    check_text("require", docs_heads::blur_rows({{1}, {32, 4}}, x, small, 1).error().text());
    check_text("require_text", docs_heads::blur_rows({{1}, {32, 4}}, x, y, 20).error().text());
    auto z = Buffer<f32>::zeroed(client, 1000).value();
    check_text("max_threads", docs_heads::fill({{1}, {512}}, z, 1).error().text());
    // example: shifted
    auto a = z.slice(0, 500), b = z.slice(100, 500);
    scale(for_num_elems(500), z.slice(0, 500), a, 2);   // the same memory
    auto refused = scale(for_num_elems(500), a, b, 2);  // shifted: refused
    // end
    check_text("aliasing", refused.error().text());
  }
  check_text("late_head", docs_heads::late.record().error().text());
}
