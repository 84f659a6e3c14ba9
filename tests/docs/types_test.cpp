// The examples of docs/language/types.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_types {

// example: difference
// The distance of two bytes: as u8 the difference would wrap at 256.
KILN_KERNEL(difference, (In<u8> a, In<u8> b, Out<i32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < a.size() && i < b.size()) { y[i] = abs(cast<i32>(a[i]) - cast<i32>(b[i])); }
}
// end

// example: literals
// Host numbers take the type of the kernel operand beside them, in every position.
KILN_KERNEL(literals, (In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    Val<f32> v = 0.5 * x[i] + 1;  // an f32, not a double
    y[i] = select(v > 2, max(0, v - 10), -1);
  }
}
// end

// example: constants
// Where no kernel operand stands beside it, a constant says its type.
KILN_KERNEL(constants, (Out<u64> y))
{
  constexpr u32 rounds = 3;  // of the host: known while recording
  Val<u64> seed = 0x9e3779b97f4a7c15;
  Var<u64> h = seed;
  for (auto i : range(rounds)) { h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9 + cast<u64>(i); }
  y[0] = h;
}
// end

// example: halves
// Stored as f16, summed as f32: 2048 + 1 is no f16.
KILN_KERNEL(sum_halves, (In<f16> x, Out<f32> sum, Out<f16> rounded))
{
  Var<f32> s = 0;
  Var<f16> h = 0;
  for (auto i : range(x.size())) {
    s += cast<f32>(x[i]);
    h += x[i];  // rounded to 11 bits in each step
  }
  sum[0] = s;
  rounded[0] = h;
}
// end

// example: eight bits
// Stored in a byte, computed as f32.
KILN_KERNEL(scale_bytes, (In<e4m3> x, Val<f32> scale, Out<e4m3> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) { y[i] = cast<e4m3>(cast<f32>(x[i]) * scale); }
}
// end

// example: flags
// bool has a type of its own, in memory one byte: 0 or 1.
KILN_KERNEL(flags, (In<i32> x, Out<bool> negative, Out<u32> count))
{
  Var<u32> n = 0;
  for (auto i : range(min(x.size(), negative.size()))) {
    Val<bool> c = x[i] < 0;
    negative[i] = c;
    n += cast<u32>(c);
  }
  count[0] = n;
}
// end

// example: inexact
KILN_KERNEL(inexact, (In<u32> x, Out<u32> y))
{
  y[0] = x[0] + -1;  // no u32 is -1: write x[0] - 1
}
// end

}  // namespace docs_types

TEST_CASE("docs/language/types") {
  check_example<i32>(docs_types::difference, {{1}, {4}}, {buffer<u8>({0, 10, 255, 200}), buffer<u8>({255, 20, 0, 100}), filled<i32>(4, 0)},
                     2, {255, 10, 255, 100});
  check_example<f32>(docs_types::literals, {{1}, {4}}, {buffer<f32>({1, 3, 30, 0}), filled<f32>(4, 0)}, 1, {-1, 0, 6, -1});
  u64 h = 0x9e3779b97f4a7c15;
  for (u64 i = 0; i < 3; ++i) h = (h ^ h >> 30) * 0xbf58476d1ce4e5b9 + i;
  check_example<u64>(docs_types::constants, {{1}, {1}}, {filled<u64>(1, 0)}, 0, {h});
  const std::vector<Arg> halves{buffer<f16>({f16(2048), f16(1), f16(1)}), filled<f32>(1, 0), filled<f16>(1, 0)};
  check_example<f32>(docs_types::sum_halves, {{1}, {1}}, halves, 1, {2050});
  check_example<f16>(docs_types::sum_halves, {{1}, {1}}, halves, 2, {f16(2048)});
  const std::vector<Arg> bytes{buffer<e4m3>({e4m3(1), e4m3(-0.4), e4m3(300)}), scalar(2.0f), buffer(std::vector<e4m3>(3))};
  check_example<e4m3>(docs_types::scale_bytes, {{1}, {4}}, bytes, 2, {e4m3(2), e4m3(-0.8), e4m3(448)});
  const std::vector<Arg> flags{buffer<i32>({3, -1, 0, -7}), filled<bool>(4, false), filled<u32>(1, 0)};
  check_example<bool>(docs_types::flags, {{1}, {1}}, flags, 1, {false, true, false, true});
  check_example<u32>(docs_types::flags, {{1}, {1}}, flags, 2, {2});
  check_text("literal_not_exact", docs_types::inexact.record().error().text());
}

TEST_CASE("docs/language/types: halves on the host") {
  // example: host halves
  const f16 tenth(0.1);  // the nearest f16, rounded once
  const f16 same = f16::from_bits(0x2e66);
  const float wide = tenth;  // exact
  // end
  CHECK(tenth.bits() == 0x2e66);
  CHECK(tenth == same);
  CHECK(wide == 0.0999755859375f);
}
