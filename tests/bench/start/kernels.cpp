#include "kernels.h"

using namespace kiln;

namespace start {

auto steps() {
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t i = 0; i < kKernels; ++i) numbers.push_back(i);
  return space<StepCfg>().axis("number", &StepCfg::number, numbers);
}

// Some arithmetic, a guard, a branch: no kernel is like another.
KILN_KERNEL(step, (const StepCfg& config, In<f32> x, InOut<f32> y, Val<f32> a), steps())
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) {
    Var v = a * x[i] + y[i];
    for (std::uint32_t n = 0; n <= config.number; ++n) v = v * 0.5f + static_cast<float>(n);
    If (v > 100.0f) { v = 100.0f; }
    y[i] = v;
  }
}

}  // namespace start
