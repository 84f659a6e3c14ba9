#include "black_scholes.h"

using namespace kiln;

namespace samples {
namespace {

// The normal distribution function, to 7.5e-8: M. Abramowitz and I. Stegun, "Handbook of Mathematical Functions", 26.2.17.
Val<f32> normal(Val<f32> d) {
  auto k = 1.0f / (1.0f + 0.2316419f * abs(d));
  auto polynomial = k * (0.319381530f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f))));
  auto upper = 0.39894228f * exp(-0.5f * d * d) * polynomial;
  return select(d > 0.0f, 1.0f - upper, upper);
}

}  // namespace

KILN_KERNEL(black_scholes, (In<f32> price, In<f32> strike, In<f32> years, Out<f32> call, Out<f32> put, Val<f32> rate, Val<f32> volatility))
{
  require(strike.size() == price.size());
  require(years.size() == price.size());
  require(call.size() == price.size());
  require(put.size() == price.size());
  auto i = global_id().x;
  If (i < price.size()) {
    Val<f32> s = price[i], x = strike[i], t = years[i];
    auto spread = volatility * sqrt(t);
    auto d1 = (log(s / x) + (rate + 0.5f * volatility * volatility) * t) / spread;
    auto d2 = d1 - spread;
    auto now = x * exp(-rate * t);  // what the strike is worth today
    call[i] = s * normal(d1) - now * normal(d2);
    put[i] = now * normal(-d2) - s * normal(-d1);
  }
}

}  // namespace samples
