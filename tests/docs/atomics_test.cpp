// The examples of docs/language/atomics.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_atomics {

// example: histogram
// Counted in the block first, then added to the result once a block.
KILN_KERNEL(histogram, (In<u8> x, InOut<u32> bins))
{
  block_size(256);
  require(bins.size() == 256);
  Shared<u32> own(256);
  auto t = thread_id().x;
  own[t] = 0;
  barrier();
  for (auto i : range(global_id().x, x.size(), block_dim().x * grid_dim().x)) { own.atomic_add(x[i], 1); }
  barrier();
  bins.atomic_add(t, own[t]);
}
// end

// example: extremes
KILN_KERNEL(extremes, (In<f32> x, InOut<f32> y))
{
  auto i = global_id().x;
  If (i < x.size()) {
    y.atomic_min(0, x[i]);  // integers and floats
    y.atomic_max(1, x[i]);
    y.atomic_add(2, x[i]);  // in whatever order: a float sum may differ from run to run
  }
}
// end

// example: integers
KILN_KERNEL(integers, (InOut<u32, 2> y))
{
  Val<u32> old = y.atomic_sub(0, 0, 1);  // the coordinates, then the value; gives the value before
  y.atomic_and(0, 1, 0b0110);
  y.atomic_or(1, 0, 0b0110);
  y.atomic_xor(1, 1, 0b0110);
  y.atomic_exchange(2, 0, old);
}
// end

// example: cas
// What no atomic does by itself: a product. Each thread tries until nobody else came between.
KILN_KERNEL(product, (In<u32> x, InOut<u32> y))
{
  auto i = global_id().x;
  If (i < x.size()) {
    Var<u32> seen = y.atomic_add(0, 0);
    Var<bool> done = false;
    While (!done) {
      Val<u32> before = y.atomic_cas(0, seen, seen * x[i]);
      done = before == seen;
      seen = before;
    }
  }
}
// end

}  // namespace docs_atomics

TEST_CASE("docs/language/atomics") {
  const auto bytes = made_of<u8>(1000, [](auto i) { return i * i; });
  std::vector<u32> bins(256);
  for (const u8 b : bytes) ++bins[b];
  check_example(docs_atomics::histogram, {{2}, {256}}, {buffer(bytes), filled<u32>(256, 0)}, 1, bins);
  check_example<f32>(docs_atomics::extremes, {{1}, {5}}, {buffer<f32>({1, -0.0f, 8, -4, 2}), buffer<f32>({0, 0, 0})}, 1, {-4, 8, 7});
  check_example<u32>(docs_atomics::integers, {{1}, {1}}, {buffer<u32>({5, 0b1010, 0b1010, 0b1010, 0, 9}, {3, 2})}, 0,
                     {4, 0b0010, 0b1110, 0b1100, 5, 9});
  check_example<u32>(docs_atomics::product, {{1}, {6}}, {buffer<u32>({1, 2, 3, 4, 5, 6}), buffer<u32>({1})}, 1, {720});
}
