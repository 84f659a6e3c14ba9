#include "stencil.h"

using namespace kiln;

namespace samples {

KILN_KERNEL(stencil5, (In<f32, 2> src, Out<f32, 2> dst, Val<f32> k))
{
  require(dst.extent(0) == src.extent(0));
  require(dst.extent(1) == src.extent(1));
  auto [c, r, z] = global_id();
  auto h = src.extent(0), w = src.extent(1);
  If (r < h && c < w) {
    If (r > 0 && r < h - 1 && c > 0 && c < w - 1) {
      auto mid = src[r, c];
      auto sum = src[r - 1, c] + src[r + 1, c] + src[r, c - 1] + src[r, c + 1];
      dst[r, c] = mid + k * (sum - 4 * mid);
    }
    Else { dst[r, c] = src[r, c]; }
  }
}

}  // namespace samples
