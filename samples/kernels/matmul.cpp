#include "matmul.h"

using namespace kiln;

namespace samples {

Space<MatmulCfg> matmul_space() {
  return space<MatmulCfg>()
      .axis("tile", &MatmulCfg::tile, {8, 16, 32})
      .axis("unroll", &MatmulCfg::unroll, {1, 2, 4, 0})
      .require("threads fit", [](const MatmulCfg& c) { return c.tile * c.tile <= 1024; })
      .require("unroll divides tile", [](const MatmulCfg& c) { return c.unroll == 0 || c.tile % c.unroll == 0; })
      .launch([](const MatmulCfg& c, const Extents& e) { return cover({e[1], e[0]}, {c.tile, c.tile}); });
}

KILN_KERNEL(matmul, (const MatmulCfg& cfg, In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c), matmul_space())
{
  const u32 tile = cfg.tile;
  block_size(tile, tile);
  require(b.extent(0) == a.extent(1));
  require(c.extent(0) == a.extent(0));
  require(c.extent(1) == b.extent(1));
  Shared<f32, 2> as(tile, tile), bs(tile, tile + 1);  // one column more, so that a column's elements lie in different banks
  auto t = thread_id(), block = block_id();
  auto row = block.y * tile + t.y, col = block.x * tile + t.x;
  auto m = a.extent(0), inner = a.extent(1), n = b.extent(1);
  Var<f32> acc = 0;
  for (auto k0 : range(0, inner, tile)) {
    auto ka = k0 + t.x, kb = k0 + t.y;
    Var<f32> va, vb;
    If (row < m && ka < inner) { va = a[row, ka]; }
    If (kb < inner && col < n) { vb = b[kb, col]; }
    as[t.y, t.x] = va;
    bs[t.y, t.x] = vb;
    barrier();
    if (cfg.unroll == 0) {
      for (u32 k = 0; k < tile; ++k) acc += as[t.y, k] * bs[k, t.x];  // a loop of C++: unrolled whole
    } else {
      for (auto q : range(tile / cfg.unroll)) {
        auto k = q * cfg.unroll;
        for (u32 u = 0; u < cfg.unroll; ++u) acc += as[t.y, k + u] * bs[k + u, t.x];
      }
    }
    barrier();
  }
  If (row < m && col < n) { c[row, col] = acc; }
}

}  // namespace samples
