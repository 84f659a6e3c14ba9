// Kernels that the tests of the command line list, show, emit and run.
#include <kiln/kiln.h>

namespace cli_test {
using namespace kiln;

KILN_KERNEL(scale, (In<f32> x, Out<f32> y, Val<f32> a))
{
  require(x.size() == y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i]; }
}

struct RepeatConfig {
  u32 times = 2;
  bool negate = false;
};

auto repeat_space() {
  return space<RepeatConfig>()
      .axis("times", &RepeatConfig::times, {1, 2, 4})
      .axis("negate", &RepeatConfig::negate, {false, true})
      .require("never both", [](const RepeatConfig& c) { return !(c.negate && c.times == 4); });
}

// y = x added up `times` times, at compile time.
KILN_KERNEL(repeat, (const RepeatConfig& config, In<i32> x, Out<i32> y), repeat_space())
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    Var<i32> sum = 0;
    for (u32 t = 0; t < config.times; ++t) sum += x[i];
    if (config.negate) y[i] = -Val<i32>(sum);
    else y[i] = sum;
  }
}

}  // namespace cli_test
