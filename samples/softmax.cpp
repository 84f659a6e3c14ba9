// Softmax over the rows of a matrix whose values reach far beyond what exp can hold.
#include "kernels/softmax.h"

#include <algorithm>
#include <cmath>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("softmax", [] {
    const std::size_t rows = 37, columns = 1000;
    std::vector<f32> host(rows * columns);
    for (std::size_t i = 0; i < host.size(); ++i)
      host[i] = static_cast<f32>(i * 7919 % 2003) / 8.0f - 100.0f + static_cast<f32>(i / columns) * 50.0f;
    const auto x = Buffer<f32, 2>(host, {rows, columns});
    auto y = Buffer<f32, 2>::uninitialised(x.client(), rows, columns).value();
    samples::softmax({{rows}, {samples::softmax_threads}}, x, y);
    std::vector<f32> want(host.size());
    for (std::size_t r = 0; r < rows; ++r) {
      const auto row = host.begin() + static_cast<std::ptrdiff_t>(r * columns), end = row + static_cast<std::ptrdiff_t>(columns);
      const double top = *std::max_element(row, end);
      double sum = 0;
      for (auto v = row; v != end; ++v) sum += std::exp(*v - top);
      for (std::size_t c = 0; c < columns; ++c)
        want[r * columns + c] = static_cast<f32>(std::exp(row[static_cast<std::ptrdiff_t>(c)] - top) / sum);
    }
    samples::expect_near(y.read().value(), want, 1e-5, 1e-37);
    return std::to_string(rows) + " x " + std::to_string(columns) + " elements";
  });
}
