// y = a * x + y on the default device, checked against the same loop in C++.
#include "kernels/saxpy.h"

#include <cmath>
#include <numeric>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("saxpy", [] {
    const std::size_t n = 1'000'003;
    std::vector<f32> hx(n), hy(n);
    for (std::size_t i = 0; i < n; ++i) {
      hx[i] = static_cast<f32>(i % 1000) * 0.25f;
      hy[i] = static_cast<f32>(i % 17);
    }
    const Buffer<f32> x(hx);
    Buffer<f32> y(hy);
    samples::saxpy(for_num_elems(n), x, y, 2.5f);
    std::vector<f32> want(n);
    for (std::size_t i = 0; i < n; ++i) want[i] = std::fma(2.5f, hx[i], hy[i]);  // a * x + y is one rounding, on every device
    samples::expect_equal(y.read().value(), want);
    return std::to_string(n) + " elements";
  });
}
