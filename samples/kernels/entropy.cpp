#include "entropy.h"

#include <numbers>

#include "histogram.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(byte_entropy, (In<u32> bins, Out<f32> entropy, Val<f64> bytes))
{
  constexpr u32 warps = byte_bins / warp::size;
  block_size(byte_bins);
  require(bins.size() == byte_bins);
  require(entropy.size() == 1);
  require(grid_dim().x * grid_dim().y * grid_dim().z == 1);
  Shared<f32> per_warp(warps);
  auto t = thread_id().x;
  Var<u32> count;
  If (t < bins.size()) { count = bins[t]; }
  auto p = cast<f32>(cast<f64>(count) / bytes);
  auto bits = select(count > 0, -p * log(p) * (1 / std::numbers::ln2), 0);
  auto of_warp = warp::sum(bits);
  If (t % warp::size == 0) { per_warp[t / warp::size] = of_warp; }
  barrier();
  If (t == 0) {
    Var<f32> sum = 0;
    for (u32 w = 0; w < warps; ++w) sum += per_warp[w];
    entropy[0] = sum;
  }
}

}  // namespace samples
