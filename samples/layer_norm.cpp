// Layer normalisation of rows whose mean is large beside their deviation.
#include "kernels/layer_norm.h"

#include <cmath>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("layer_norm", [] {
    const std::size_t rows = 29, columns = 777;
    std::vector<f32> host(rows * columns), scale(columns), offset(columns), want(host.size());
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = 1000.0f + static_cast<f32>(i * 31 % 97) / 16.0f;
    for (std::size_t c = 0; c < columns; ++c) scale[c] = 0.5f + static_cast<f32>(c % 5), offset[c] = static_cast<f32>(c % 3) - 1.0f;
    const f32 epsilon = 1e-5f;
    const auto x = Buffer<f32, 2>(host, {rows, columns});
    const Buffer<f32> s(scale), o(offset);
    auto y = Buffer<f32, 2>::uninitialised(x.client(), rows, columns).value();
    samples::layer_norm({{rows}, {samples::layer_norm_threads}}, x, s, o, y, epsilon);
    for (std::size_t r = 0; r < rows; ++r) {
      double mean = 0, variance = 0;
      for (std::size_t c = 0; c < columns; ++c) mean += host[r * columns + c];
      mean /= columns;
      for (std::size_t c = 0; c < columns; ++c) variance += std::pow(host[r * columns + c] - mean, 2);
      const double factor = 1 / std::sqrt(variance / columns + epsilon);
      for (std::size_t c = 0; c < columns; ++c)
        want[r * columns + c] = static_cast<f32>((host[r * columns + c] - mean) * factor * scale[c] + offset[c]);
    }
    samples::expect_near(y.read().value(), want, 1e-4, 1e-3);
    return std::to_string(rows) + " x " + std::to_string(columns) + " elements";
  });
}
