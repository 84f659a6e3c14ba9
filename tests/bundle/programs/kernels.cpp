// The kernels of the programs that embed bundles, as their author has them. Only the program that makes the bundles has this source.
#include "kiln/kiln.h"

using namespace kiln;

namespace ns {

KILN_KERNEL(scale, (In<f32> x, Out<f32> y, Val<f32> a))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i]; }
}

struct ShiftCfg {
  std::uint32_t by = 1;
};
KILN_CONFIG(ShiftCfg, by)
auto shift_space() { return space<ShiftCfg>().axis("by", &ShiftCfg::by, {1, 3}); }

KILN_KERNEL(shift, (const ShiftCfg& config, InOut<u32> y), shift_space())
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = y[i] + config.by; }
}

}  // namespace ns
