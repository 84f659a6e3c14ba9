#include "kernels.h"

namespace kiln::bench {

KILN_KERNEL(empty, ()) {}

KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a)) {
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}

KILN_KERNEL(stencil5, (In<f32, 2> in, Out<f32, 2> out, Val<f32> k)) {
  require(in.extent(0) == out.extent(0) && in.extent(1) == out.extent(1));
  auto c = global_id().x, r = global_id().y;
  auto rows = in.extent(0), columns = in.extent(1);
  If (r < rows && c < columns) {
    If (r > 0u && r + 1u < rows && c > 0u && c + 1u < columns) {
      auto middle = in(r, c);
      out(r, c) = middle + k * (in(r - 1u, c) + in(r + 1u, c) + in(r, c - 1u) + in(r, c + 1u) - 4.0f * middle);
    }
    Else { out(r, c) = in(r, c); }
  }
}

KILN_KERNEL(matmul, (const MatmulConfig& config, In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c)) {
  const u32 tile = config.tile;
  block_size(tile, tile);
  require(a.extent(1) == b.extent(0) && c.extent(0) == a.extent(0) && c.extent(1) == b.extent(1));
  Shared<f32, 2> left(tile, tile), right(tile, tile);
  auto tx = thread_id().x, ty = thread_id().y;
  auto row = global_id().y, column = global_id().x;
  Var<f32> sum = 0.0f;
  for (auto k : range(0u, a.extent(1), tile)) {
    Var<f32> l = 0.0f, r = 0.0f;
    If (row < a.extent(0) && k + tx < a.extent(1)) { l = a(row, k + tx); }
    If (k + ty < b.extent(0) && column < b.extent(1)) { r = b(k + ty, column); }
    left(ty, tx) = l;
    right(ty, tx) = r;
    barrier();
    for (u32 t = 0; t < tile; ++t) sum += left(ty, t) * right(t, tx);
    barrier();
  }
  If (row < c.extent(0) && column < c.extent(1)) { c(row, column) = sum; }
}

KILN_KERNEL(block_sum, (In<f32> x, Out<f32> sums)) {
  constexpr u32 kThreads = 256;
  block_size(kThreads);
  Shared<f32> parts(kThreads / 32);
  auto t = thread_id().x;
  Var<f32> sum = 0.0f;
  for (auto i : range(global_id().x, x.size(), grid_dim().x * kThreads)) sum += x[i];
  Val<f32> warp_sum = warp::sum(Val<f32>(sum));
  If (lane_id() == 0u) { parts[warp_id()] = warp_sum; }
  barrier();
  If (t < 32u) {
    Var<f32> part = 0.0f;
    If (t < kThreads / 32) { part = parts[t]; }
    Val<f32> total = warp::sum(Val<f32>(part));
    If (t == 0u && block_id().x < sums.size()) { sums[block_id().x] = total; }
  }
}

KILN_KERNEL(histogram, (In<u32> x, InOut<u32> bins)) {
  constexpr u32 kThreads = 256, kBins = 256;
  block_size(kThreads);
  require(bins.size() == kBins);
  Shared<u32> counts(kBins);
  auto t = thread_id().x;
  counts[t] = 0u;
  barrier();
  for (auto i : range(global_id().x, x.size(), grid_dim().x * kThreads)) counts.atomic_add(x[i] % kBins, 1u);
  barrier();
  bins.atomic_add(t, counts[t]);
}

}  // namespace kiln::bench
