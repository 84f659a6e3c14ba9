// The examples of docs/language/values.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_values {

// example: largest
KILN_KERNEL(largest, (In<f32> x, Out<f32> y))
{
  Var<f32> best = x[0];  // changes
  for (auto i : range(x.size())) {
    Val<f32> v = x[i];  // read once, used twice
    If (v > best) { best = v; }
  }
  y[0] = best;
}
// end

// example: vars
KILN_KERNEL(vars, (Out<i32> y))
{
  Var<i32> a = 7, b;  // b is 0
  Var<i32> c = a;     // a local of its own, with a's value
  a += 3;
  a *= 2;
  a %= 12;
  c <<= 1;
  ++b;
  y[0] = a;
  y[1] = b--;  // 1, and b is 0 again
  y[2] = b + c;
}
// end

// example: compound
// Every compound assignment; on memory too.
KILN_KERNEL(compound, (InOut<u32> y))
{
  Var<u32> v = y[0];
  v += 9, v -= 1, v *= 3, v /= 2, v %= 100;
  v &= 0xff, v |= 0x100, v ^= 1, v <<= 4, v >>= 2;
  y[0] = v;
  y[1] += 5;
}
// end

// example: stays
KILN_KERNEL(stays, (In<f32> x, Out<f32> y))
{
  std::vector<Val<f32>> kept;  // values are objects of the host while recording
  If (x.size() > 1) { kept.push_back(x[1]); }
  y[0] = kept[0];  // in the kernel it may never have been computed
}
// end

}  // namespace docs_values

TEST_CASE("docs/language/values") {
  check_example<f32>(docs_values::largest, {{1}, {1}}, {buffer<f32>({3, 7, -1}), filled<f32>(1, 0)}, 1, {7});
  check_example<i32>(docs_values::vars, {{1}, {1}}, {filled<i32>(3, 0)}, 0, {8, 1, 14});
  u32 v = 4;
  v += 9, v -= 1, v *= 3, v /= 2, v %= 100, v &= 0xff, v |= 0x100, v ^= 1, v <<= 4, v >>= 2;
  check_example<u32>(docs_values::compound, {{1}, {1}}, {buffer<u32>({4, 1})}, 0, {v, 6});
  check_text("value_out_of_its_branch", docs_values::stays.record().error().text());
}
