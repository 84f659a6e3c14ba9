// The examples of docs/language/memories.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_memories {

// example: transpose
KILN_KERNEL(transpose, (In<f32, 2> a, Out<f32, 2> b))
{
  require(b.extent(0) == a.extent(1) && b.extent(1) == a.extent(0));
  auto [c, r, z] = global_id();
  If (r < a.extent(0) && c < a.extent(1)) { b[c, r] = a[r, c]; }
}
// end

// example: subscripts
KILN_KERNEL(subscripts, (In<u32, 3> a, InOut<u32> y))
{
  Val<u8> row = 1;
  y[0] = a[row, 1, 0] + a(0, 0, 1);  // any integer types; a(...) is a[...]
  y[1] = a.size() * 100 + a.extent(2);
  y[2] = cast<u32>(a.size64() + a.extent64(0));
  y[3] += 4;  // one read and one write
}
// end

// example: strided
// Row-major or not: one stride for each dimension, given by the launch.
KILN_KERNEL(row_sums, (In<i32, 2, Strided> a, Out<i32> sums))
{
  auto r = global_id().x;
  If (r < sums.size() && r < a.extent(0)) {
    Var<i32> s = 0;
    for (auto c : range(a.extent(1))) { s += a[r, c]; }
    sums[r] = s;
  }
}
// end

// example: shared
KILN_KERNEL(reversed_blocks, (In<f32> x, Out<f32> y))
{
  block_size(64);
  Shared<f32> tile(64);  // one for all threads of the block, undefined at first
  auto i = global_id().x, t = thread_id().x;
  If (i < x.size()) { tile[t] = x[i]; }
  Else { tile[t] = 0; }
  barrier();
  If (i < y.size()) { y[i] = tile[63 - t]; }
}
// end

// example: dynamic
KILN_KERNEL(rotated, (In<u32> x, Out<u32> y))
{
  DynamicShared<u32> d;  // as many elements as the launch's shared_bytes give
  auto t = thread_id().x, n = d.size();
  If (t < n && t < x.size()) { d[t] = x[t]; }
  barrier();
  If (t < n && t < y.size()) { y[t] = d[(t + 1) % n]; }
}
// end

// example: local
// The middle one of each five values.
KILN_KERNEL(median, (In<i32> x, Out<i32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i * 5 + 4 < x.size()) {
    Local<i32, 5> v;  // each thread's own
    for (auto k : range(5)) {
      Val<i32> one = x[i * 5 + k];
      Var<i32> j = cast<i32>(k);
      While (j > 0 && v[j - 1] > one) {
        v[j] = v[j - 1];
        j -= 1;
      }
      v[j] = one;
    }
    y[i] = v[2];
  }
}
// end

// example: by reference
Val<u32> total(const Shared<u32>& counts) {
  Var<u32> sum = 0;
  for (auto i : range(static_cast<u32>(counts.size()))) { sum += counts[i]; }
  return sum;
}

KILN_KERNEL(count_parts, (In<u32> x, Out<u32> y))
{
  block_size(32);
  Shared<u32> counts(32);
  auto t = thread_id().x;
  counts[t] = select(t < x.size(), t, 0);
  barrier();
  If (t == 0) { y[0] = total(counts); }
}
// end

// example: beyond
KILN_KERNEL(beyond, (In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  y[i] = x[i + 1];  // the last thread reads behind the end
}
// end

// example: negative
KILN_KERNEL(negative, (In<f32> x, Out<f32> y))
{
  y[0] = x[-1];  // before the first element
}
// end

}  // namespace docs_memories

TEST_CASE("docs/language/memories: buffers") {
  using docs_memories::row_sums;
  check_example<f32>(docs_memories::transpose, {{1}, {3, 2}},
                     {buffer<f32>({1, 2, 3, 4, 5, 6}, {2, 3}), buffer(std::vector<f32>(6), {3, 2})}, 1, {1, 4, 2, 5, 3, 6});
  check_example<u32>(docs_memories::subscripts, {{1}, {1}},
                     {buffer<u32>({1, 2, 3, 4, 5, 6, 7, 8}, {2, 2, 2}), buffer<u32>({0, 0, 0, 5, 6})}, 1, {7 + 2, 802, 10, 9, 6});
  Arg columns = buffer<i32>({1, 2, 3, 4, 5, 6}, {3, 2});  // 2 rows of 3, seen as 3 rows of 2
  columns.strides = {1, 3};
  check_example<i32>(docs_memories::row_sums, {{1}, {3}}, {columns, filled<i32>(3, 0)}, 1, {5, 7, 9});
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    auto y = Buffer<i32>::zeroed(client, 3).value();
    // example: strided launch
    const auto a = Buffer<i32, 2>::from_host(client, {1, 2, 3, 4, 5, 6}, {2, 3}).value();
    row_sums({{1}, {3}}, StridedView(a).transposed(), y);  // the sums of the columns of a
    // end
    CHECK(y.read().value() == std::vector<i32>{5, 7, 9});
  }
}

TEST_CASE("docs/language/memories: of the block and of a thread") {
  const auto x = made_of<f32>(100, [](auto i) { return i; });
  check_example<f32>(docs_memories::reversed_blocks, {{2}, {64}}, {buffer(x), filled<f32>(100, -1)}, 1, made_of<f32>(100, [](auto i) {
                       return i < 64 ? 63 - i : 127 - (i - 64) < 100 ? 127 - (i - 64) : 0;
                     }));
  LaunchConfig config{{1}, {8}};
  config.shared_bytes = 32;
  check_example<u32>(docs_memories::rotated, config, {buffer<u32>({1, 2, 3, 4, 5, 6, 7, 8}), filled<u32>(8, 0)}, 1,
                     {2, 3, 4, 5, 6, 7, 8, 1});
  check_example<i32>(docs_memories::median, {{1}, {2}}, {buffer<i32>({5, 1, 4, 2, 3, -1, 9, 9, 0, -1}), filled<i32>(2, 0)}, 1, {3, 0});
  check_example<u32>(docs_memories::count_parts, {{1}, {32}}, {filled<u32>(20, 0), filled<u32>(1, 0)}, 1, {190});
}

TEST_CASE("docs/language/memories: out of range") {
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto x = Buffer<f32>::from_host(client, std::vector<f32>(100, 1)).value();
    auto y = Buffer<f32>::zeroed(client, 100).value();
    docs_memories::beyond({{1}, {100}}, x, y);
    check_text("out_of_range", y.read().error().text());
  }
  check_text("negative_index", docs_memories::negative.record().error().text());
}
