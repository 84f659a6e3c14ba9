#include "scale.h"

#include <kiln/kiln.h>

namespace demo {
using namespace kiln;

// The axes stand in another order than the members.
auto scale_space() {
  return space<ScaleCfg>()
      .axis("factor", &ScaleCfg::factor, {2, 3})
      .axis("twice", &ScaleCfg::twice, {false, true})
      .axis("side", &ScaleCfg::side, {Side::Left, Side::Right});
}

KILN_KERNEL(scale, (const ScaleCfg& cfg, In<f32> x, Out<f32> y), scale_space())
{
  auto i = global_id().x;
  const float factor = static_cast<float>(cfg.factor) * (cfg.twice ? 2.0f : 1.0f) * (cfg.side == Side::Left ? 1.0f : -1.0f);
  If (i < y.size()) { y[i] = x[i] * factor; }
}

}  // namespace demo
