// The examples of docs/language/families.md.
#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_families {

// example: config
struct MatmulCfg {
  u32 tile = 16;
  bool transposed = false;
};
KILN_CONFIG(MatmulCfg, tile, transposed)  // names the members
// end

// example: space
auto matmul_space() {
  return space<MatmulCfg>()
      .axis("tile", &MatmulCfg::tile, {8, 16, 32, 64})
      .require("threads fit", [](const MatmulCfg& c) { return c.tile * c.tile <= 1024; })
      .launch([](const MatmulCfg& c, const Extents& e) { return cover({e[1], e[0]}, {c.tile, c.tile}); });
}
// end

// example: matmul
KILN_KERNEL(matmul, (const MatmulCfg& cfg, In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c), matmul_space())
{
  const u32 tile = cfg.tile;
  block_size(tile, tile);
  require(a.extent(0) >= c.extent(0));
  Shared<f32, 2> as(tile, tile), bs(tile, tile);
  auto [col, row, z] = global_id();
  auto [x, y, w] = thread_id();
  Val<u32> inner = a.extent(1);
  Var<f32> sum = 0;
  for (auto first : range(0, inner, tile)) {
    as[y, x] = 0;
    bs[y, x] = 0;
    If (row < a.extent(0) && first + x < inner) { as[y, x] = a[row, first + x]; }
    if (cfg.transposed) {  // of the host: each variant has one of the two
      If (first + y < inner && col < b.extent(0)) { bs[y, x] = b[col, first + y]; }
    } else {
      If (first + y < inner && col < b.extent(1)) { bs[y, x] = b[first + y, col]; }
    }
    barrier();
    for (u32 k = 0; k < tile; ++k) sum = fma(as[y, k], bs[k, x], sum);
    barrier();
  }
  If (row < c.extent(0) && col < c.extent(1)) { c[row, col] = sum; }
}
// end

// example: plain
struct PowerCfg {
  i32 exponent = 2;
};
KILN_CONFIG(PowerCfg, exponent)

KILN_KERNEL(power, (const PowerCfg& cfg, In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    Var<f32> p = 1;
    for (i32 k = 0; k < cfg.exponent; ++k) p *= x[i];
    y[i] = p;
  }
}
// end

}  // namespace docs_families

using docs_families::MatmulCfg;
using docs_families::PowerCfg;

TEST_CASE("docs/language/families") {
  const std::vector<f32> a{1, 2, 3, 4, 5, 6}, b{1, 0, 2, 0, 1, 1};
  const std::vector<f32> product{1 + 6, 2 + 3, 4 + 12, 5 + 6};  // [1 2 3; 4 5 6] times [1 0; 2 0; ...] below
  const std::vector<Arg> args{buffer(a, {2, 3}), buffer<f32>({1, 0, 0, 1, 2, 1}, {3, 2}), buffer(std::vector<f32>(4), {2, 2})};
  check_example_with<f32>(docs_families::matmul, MatmulCfg{.tile = 8}, {{1}, {8, 8}}, args, 2, product, {.ptx = Ptx::Sm90});
  const std::vector<Arg> other{buffer(a, {2, 3}), buffer<f32>({1, 0, 2, 0, 1, 1}, {2, 3}), buffer(std::vector<f32>(4), {2, 2})};
  check_example_with<f32>(docs_families::matmul, MatmulCfg{.tile = 8, .transposed = true}, {{1}, {8, 8}}, other, 2, product,
                          {.ptx = Ptx::Sm90});
  check_example_with<f32>(docs_families::power, PowerCfg{.exponent = 3}, {{1}, {2}}, {buffer<f32>({2, -3}), filled<f32>(2, 0)}, 1,
                          {8, -27});
}

TEST_CASE("docs/language/families: launches and configs") {
  using docs_families::matmul, docs_families::matmul_space;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto a = Buffer<f32, 2>::from_host(client, {1, 2, 3, 4}, {2, 2}).value(), b = a;
    auto c = Buffer<f32, 2>::zeroed(client, 2, 2).value();
    // example: with
    const auto all = matmul_space();
    const MatmulCfg cfg{.tile = 8};
    matmul.with(cfg)(all.launch_for(cfg, {2, 2}), a, b, c);  // one variant
    matmul({{1}, {16, 16}}, a, b, c);                        // the default config
    const std::vector<f32> product = c.read().value();
    const Result<void> refused = matmul.with({.tile = 64})({{1}, {32, 32}}, a, b, c);
    // end
    CHECK(product == std::vector<f32>{7, 10, 15, 22});
    check_text("config_rule", refused.error().text());
    check_text("config_value", docs_families::matmul.with({.tile = 9})({{1}, {9, 9}}, a, b, c).error().text());
  }
  // example: enumerate
  const Space<MatmulCfg> all = matmul_space();
  const auto configs = all.configs();   // those that may be: tile = 16, 8 and 32
  const auto refusals = all.refused();  // with .config, .text and .reason
  const MatmulCfg usual = all.defaults();
  const std::string name = all.text({.tile = 8});  // "tile=8,transposed=false"
  const bool knows_its_launch = all.has_launch();
  // end
  CHECK(usual.tile == 16);
  CHECK(name == "tile=8,transposed=false");
  CHECK(knows_its_launch);
  CHECK(configs.size() == 3);
  CHECK(configs.front().tile == 16);
  REQUIRE(refusals.size() == 1);
  CHECK(refusals[0].text == "tile=64,transposed=false");
}
