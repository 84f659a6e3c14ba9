// The steps of docs/tutorial.md.
#include <algorithm>
#include <regex>

#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_tutorial {

// example: add
KILN_KERNEL(add_scaled, (In<f32> x, InOut<f32> y, Val<f32> a))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}
// end

// example: plain
KILN_KERNEL(product_plain, (In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c))
{
  require(a.extent(1) == b.extent(0));
  require(c.extent(0) == a.extent(0) && c.extent(1) == b.extent(1));
  auto [column, row, z] = global_id();  // x is the fastest axis: neighbours in x read and write neighbours in memory
  If (row < c.extent(0) && column < c.extent(1)) {
    Var<f32> sum = 0;
    for (auto k : range(a.extent(1))) { sum += a[row, k] * b[k, column]; }
    c[row, column] = sum;
  }
}
// end

// example: tiled
KILN_KERNEL(product_tiled, (In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c))
{
  constexpr u32 tile = 16;
  block_size(tile, tile);
  require(a.extent(1) == b.extent(0));
  require(c.extent(0) == a.extent(0) && c.extent(1) == b.extent(1));
  Shared<f32, 2> as(tile, tile), bs(tile, tile + 1);  // one column more, so that a column's elements lie in different banks
  auto [x, y, none] = thread_id();
  auto [column, row, z] = global_id();
  Var<f32> sum = 0;
  for (auto first : range(0, a.extent(1), tile)) {
    Var<f32> from_a, from_b;  // 0 beyond the edges, which changes no sum
    If (row < a.extent(0) && first + x < a.extent(1)) { from_a = a[row, first + x]; }
    If (first + y < b.extent(0) && column < b.extent(1)) { from_b = b[first + y, column]; }
    as[y, x] = from_a;
    bs[y, x] = from_b;
    barrier();                                                  // both tiles are there
    for (u32 k = 0; k < tile; ++k) sum += as[y, k] * bs[k, x];  // of the host: sixteen lines of the kernel
    barrier();                                                  // nobody reads them any more
  }
  If (row < c.extent(0) && column < c.extent(1)) { c[row, column] = sum; }
}
// end

// example: family
struct ProductCfg {
  u32 tile = 16;
};
KILN_CONFIG(ProductCfg, tile)

Space<ProductCfg> product_space() {
  return space<ProductCfg>()
      .axis("tile", &ProductCfg::tile, {8, 16, 32})
      .require("threads fit", [](const ProductCfg& c) { return c.tile * c.tile <= 1024; })
      .launch([](const ProductCfg& c, const Extents& e) { return cover({e[1], e[0]}, {c.tile, c.tile}); });
}

KILN_KERNEL(product, (const ProductCfg& cfg, In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c), product_space())
{
  const u32 tile = cfg.tile;  // known while this variant is recorded
  block_size(tile, tile);
  // end
  require(a.extent(1) == b.extent(0));
  require(c.extent(0) == a.extent(0) && c.extent(1) == b.extent(1));
  Shared<f32, 2> as(tile, tile), bs(tile, tile + 1);
  auto [x, y, none] = thread_id();
  auto [column, row, z] = global_id();
  Var<f32> sum = 0;
  for (auto first : range(0, a.extent(1), tile)) {
    Var<f32> from_a, from_b;
    If (row < a.extent(0) && first + x < a.extent(1)) { from_a = a[row, first + x]; }
    If (first + y < b.extent(0) && column < b.extent(1)) { from_b = b[first + y, column]; }
    as[y, x] = from_a;
    bs[y, x] = from_b;
    barrier();
    for (u32 k = 0; k < tile; ++k) sum += as[y, k] * bs[k, x];
    barrier();
  }
  If (row < c.extent(0) && column < c.extent(1)) { c[row, column] = sum; }
}

// example: total
KILN_KERNEL(total, (In<f32> x, Out<f32> sum))
{
  constexpr u32 threads = 256;
  block_size(threads);
  require(sum.size() == 1 && grid_dim().x == 1);
  Shared<f32> parts(threads / warp::size);
  auto t = thread_id().x;
  Var<f32> mine = 0;
  for (auto i : range(t, x.size(), threads)) { mine += x[i]; }
  Val<f32> of_warp = warp::sum(mine);  // all lanes have it
  If (lane_id() == 0) { parts[warp_id()] = of_warp; }
  barrier();
  If (t == 0) {
    Var<f32> all = 0;
    for (u32 w = 0; w < threads / warp::size; ++w) all += parts[w];
    sum[0] = all;
  }
}
// end

// example: picked
KILN_KERNEL(picked, (In<f32> values, In<u32> index, Out<f32> y))
{
  require(index.size() == y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = values[index[i]]; }  // nothing proves that the number in `index` is one of `values`
}
// end

// example: check
KILN_KERNEL(picked_or_told, (In<f32> values, In<u32> index, Out<f32> y))
{
  require(index.size() == y.size() && values.size() > 0);
  auto i = global_id().x;
  If (i < y.size()) {
    Val<u32> at = index[i];
    check(at < values.size(), "index[{}] is {}", i, at);
    y[i] = values[min(at, values.size() - 1)];
  }
}
// end

KILN_KERNEL(minus, (In<f32> x, In<f32> y, Out<f32> z))
{
  require(x.size() >= z.size() && y.size() >= z.size());
  auto i = global_id().x;
  If (i < z.size()) { z[i] = x[i] - y[i]; }
}

}  // namespace docs_tutorial

namespace {

using docs_tutorial::ProductCfg;

std::vector<f32> numbers(std::size_t n, unsigned seed) {
  return made_of<f32>(n, [&](auto i) { return static_cast<f32>((i * 7 + seed) % 13) - 6; });
}

std::vector<f32> product_of(const std::vector<f32>& a, const std::vector<f32>& b, std::size_t m, std::size_t inner, std::size_t n) {
  std::vector<f32> c(m * n);
  for (std::size_t r = 0; r < m; ++r)
    for (std::size_t k = 0; k < inner; ++k)
      for (std::size_t j = 0; j < n; ++j) c[r * n + j] += a[r * inner + k] * b[k * n + j];  // whole numbers: every order gives the same
  return c;
}

// How many accesses are tested when the kernel runs.
std::size_t tested(Result<ir::Kernel> recorded) {
  const auto variant = made(std::move(recorded));
  const std::vector<ir::FaultSite>& sites = variant->prepared().value()->sites;
  return static_cast<std::size_t>(std::count_if(sites.begin(), sites.end(), [](const auto& s) { return !s.is_check() && !s.is_trap(); }));
}

}  // namespace

TEST_CASE("docs/tutorial: what is proven, and what is tested when it runs") {
  CHECK(tested(docs_tutorial::add_scaled.record()) == 0);
  CHECK(tested(docs_tutorial::product_plain.record()) == 0);
  CHECK(tested(docs_tutorial::product_tiled.record()) == 0);
  CHECK(tested(docs_tutorial::total.record()) == 0);
  CHECK(tested(docs_tutorial::picked.record()) == 1);
  CHECK(tested(docs_tutorial::picked_or_told.record()) == 0);
}

TEST_CASE("docs/tutorial: the default client") {
  // example: client
  const Client client = Client::default_client();  // KILN_DEVICE, else the first usable GPU, else the CPU
  // end
  CHECK(!client.properties().name.empty());
}

TEST_CASE("docs/tutorial: a kernel and its launch") {
  using docs_tutorial::add_scaled;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    // example: add launch
    const auto x = Buffer<f32>::from_host(client, std::vector<f32>(1000, 1)).value();
    auto y = Buffer<f32>::from_host(client, std::vector<f32>(1000, 2)).value();
    add_scaled(for_num_elems(1000), x, y, 3.0f);       // does not wait
    const std::vector<f32> values = y.read().value();  // waits for it
    // end
    CHECK(values == std::vector<f32>(1000, 5));
  }
}

TEST_CASE("docs/tutorial: a product of matrices, plain, tiled and as a family") {
  using docs_tutorial::product, docs_tutorial::product_plain, docs_tutorial::product_space, docs_tutorial::product_tiled;
  const std::size_t m = 37, inner = 21, n = 50;
  const std::vector<f32> ha = numbers(m * inner, 1), hb = numbers(inner * n, 2), wanted = product_of(ha, hb, m, inner, n);
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    // example: plain launch
    const auto a = Buffer<f32, 2>::from_host(client, ha, {m, inner}).value();  // m rows
    const auto b = Buffer<f32, 2>::from_host(client, hb, {inner, n}).value();
    auto c = Buffer<f32, 2>::uninitialised(client, m, n).value();
    product_plain(cover({n, m}, {16, 16}), a, b, c);  // blocks of 16 x 16 threads for n columns and m rows
    // end
    CHECK(c.read().value() == wanted);
    c = Buffer<f32, 2>::uninitialised(client, m, n).value();
    // example: tiled launch
    product_tiled(cover({n, m}, {16, 16}), a, b, c);
    const Result<void> refused = product_tiled(cover({n, m}, {32, 8}), a, b, c);
    // end
    check_text("tutorial_block", refused.error().text());
    product_tiled(cover({n, m}, {16, 16}), a, b, c);  // an Out of a refused launch is claimed
    CHECK(c.read().value() == wanted);
    // example: family launch
    const auto space = product_space();
    std::vector<std::vector<f32>> results;
    for (const ProductCfg& cfg : space.configs()) {
      product.with(cfg)(space.launch_for(cfg, {m, n}), a, b, c);
      results.push_back(c.read().value());
    }
    // end
    CHECK(results == std::vector(3, wanted));
  }
}

TEST_CASE("docs/tutorial: a sum") {
  check_example<f32>(docs_tutorial::total, {{1}, {256}}, {buffer(made_of<f32>(1000, [](auto i) { return i % 8; })), filled<f32>(1, 0)}, 1,
                     {3500});
}

TEST_CASE("docs/tutorial: what a failure concerns, and what repairs it") {
  using docs_tutorial::picked, docs_tutorial::picked_or_told, docs_tutorial::total;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto values = Buffer<f32>::from_host(client, {10, 20, 30, 40}).value();
    // example: failure
    auto index = Buffer<u32>::from_host(client, {3, 0, 7, 1}).value();  // there is no element 7
    auto y = Buffer<f32>::uninitialised(client, 4).value(), sum = Buffer<f32>::uninitialised(client, 1).value();
    picked({{1}, {4}}, values, index, y);
    total({{1}, {256}}, y, sum);                       // reads what the launch before did not write
    const Result<std::vector<f32>> s = sum.read();     // refused; the error has the root
    const std::vector<f32> v = values.read().value();  // other memory is not concerned
    // end
    const std::regex known("skipped `total`: it needed");
    check_text("tutorial_chain", std::regex_replace(s.error().text(), known, "voided `total`: it had been enqueued, and read"));
    CHECK(v.size() == 4);
    // example: repair
    index.write({3, 0, 2, 1});             // the cause
    picked({{1}, {4}}, values, index, y);  // y is an Out: success ends the failure on it
    total({{1}, {256}}, y, sum);           // and so here
    const std::vector<f32> right = sum.read().value();
    // end
    CHECK(right == std::vector<f32>{100});
    index.write({3, 0, 7, 1});
    picked_or_told({{1}, {4}}, values, index, y);
    check_text("tutorial_check", y.read().error().text());
    picked_or_told.unchecked()({{1}, {4}}, values, index, y);
    CHECK(y.read().value() == std::vector<f32>{40, 10, 40, 20});
  }
}

TEST_CASE("docs/tutorial: streams") {
  using docs_tutorial::minus, docs_tutorial::product, docs_tutorial::product_space, docs_tutorial::total;
  const std::size_t n = 40;
  const std::vector<f32> ha = numbers(n * n, 3), hb = numbers(n * n, 5);
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto a = Buffer<f32, 2>::from_host(client, ha, {n, n}).value(), b = Buffer<f32, 2>::from_host(client, hb, {n, n}).value();
    auto ab = Buffer<f32, 2>::uninitialised(client, n, n).value(), ba = ab;
    ba = Buffer<f32, 2>::uninitialised(client, n, n).value();
    auto sum_ab = Buffer<f32>::uninitialised(client, 1).value(), sum_ba = sum_ab, difference = sum_ab;
    sum_ba = Buffer<f32>::uninitialised(client, 1).value();
    difference = Buffer<f32>::uninitialised(client, 1).value();
    const ProductCfg cfg{.tile = 8};
    const LaunchConfig config = product_space().launch_for(cfg, {n, n});
    // example: streams
    const Stream left = client.stream(), right = client.stream();
    product.with(cfg)(left, config, a, b, ab);  // these two may run at a time
    product.with(cfg)(right, config, b, a, ba);
    total(left, {{1}, {256}}, ab.view(n * n), sum_ab);  // after the product on its stream
    total(right, {{1}, {256}}, ba.view(n * n), sum_ba);
    minus(left, for_num_elems(1), sum_ab, sum_ba, difference);  // after both sums: the runtime knows that it reads sum_ba
    const std::vector<f32> d = difference.read().value();
    // end
    f32 wanted = 0;
    for (const f32 v : product_of(ha, hb, n, n, n)) wanted += v;
    for (const f32 v : product_of(hb, ha, n, n, n)) wanted -= v;
    CHECK(d == std::vector<f32>{wanted});
    // example: time
    const auto work = [&] { return product.with(cfg)(left, config, a, b, ab); };
    const std::chrono::nanoseconds time = profile(left, work).value();  // on the device's clock
    // end
    CHECK(time.count() > 0);
  }
}
