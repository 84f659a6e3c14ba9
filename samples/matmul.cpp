// A product of matrices by every variant of the family, each checked against C++ and against the others.
#include "kernels/matmul.h"

#include <cmath>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("matmul", [] {
    const std::size_t m = 150, inner = 91, n = 133;
    std::vector<f32> ha(m * inner), hb(inner * n), want(m * n);
    for (std::size_t i = 0; i < ha.size(); ++i) ha[i] = static_cast<f32>(i % 13) - 6;
    for (std::size_t i = 0; i < hb.size(); ++i) hb[i] = static_cast<f32>(i % 7) / 4;
    for (std::size_t r = 0; r < m; ++r) {
      for (std::size_t c = 0; c < n; ++c) {
        for (std::size_t k = 0; k < inner; ++k) want[r * n + c] = std::fma(ha[r * inner + k], hb[k * n + c], want[r * n + c]);
      }
    }
    const Buffer<f32, 2> a(ha, {m, inner}), b(hb, {inner, n});
    const auto space = samples::matmul_space();
    std::size_t variants = 0;
    for (const samples::MatmulCfg& config : space.configs()) {
      auto c = Buffer<f32, 2>::uninitialised(a.client(), m, n).value();
      samples::matmul.with(config)(space.launch_for(config, {m, n}), a, b, c);
      samples::expect_equal(c.read().value(), want);
      ++variants;
    }
    return std::to_string(m) + " x " + std::to_string(inner) + " x " + std::to_string(n) + " by " + std::to_string(variants) + " variants";
  });
}
