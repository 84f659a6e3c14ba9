// Option prices beside the formula in double precision.
#include "kernels/black_scholes.h"

#include <cmath>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("black_scholes", [] {
    const std::size_t n = 100'003;
    const f32 rate = 0.02f, volatility = 0.3f;
    std::vector<f32> price(n), strike(n), years(n), call(n), put(n);
    const auto normal = [](double d) { return 0.5 * std::erfc(-d / std::sqrt(2.0)); };
    for (std::size_t i = 0; i < n; ++i) {
      price[i] = 5.0f + static_cast<f32>(i * 17 % 2503) / 100.0f;
      strike[i] = 1.0f + static_cast<f32>(i * 29 % 9901) / 100.0f;
      years[i] = 0.25f + static_cast<f32>(i * 13 % 977) / 100.0f;
      const double s = price[i], x = strike[i], t = years[i], spread = volatility * std::sqrt(t);
      const double d1 = (std::log(s / x) + (rate + 0.5 * volatility * volatility) * t) / spread, d2 = d1 - spread,
                   now = x * std::exp(-rate * t);
      call[i] = static_cast<f32>(s * normal(d1) - now * normal(d2));
      put[i] = static_cast<f32>(now * normal(-d2) - s * normal(-d1));
    }
    const Buffer<f32> s(price), x(strike), t(years);
    auto c = Buffer<f32>::uninitialised(s.client(), n).value(), p = Buffer<f32>::uninitialised(s.client(), n).value();
    samples::black_scholes(for_num_elems(n), s, x, t, c, p, rate, volatility);
    samples::expect_near(c.read().value(), call, 0, 1e-4);
    samples::expect_near(p.read().value(), put, 0, 1e-4);
    return std::to_string(n) + " options";
  });
}
