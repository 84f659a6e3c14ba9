// One step of gravity among a few hundred bodies.
#include "kernels/nbody.h"

#include <cmath>

#include "check.h"

using namespace kiln;

int main() {
  return samples::check("nbody", [] {
    const std::size_t n = 500;
    std::vector<f32> p[3], mass(n), want[3];
    for (int d = 0; d < 3; ++d) p[d].resize(n), want[d].resize(n);
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t d = 0; d < 3; ++d) p[d][i] = static_cast<f32>((i * (7919 + 104 * d) + d) % 1009) / 100.0f;
      mass[i] = 1.0f + static_cast<f32>(i % 4);
    }
    const f32 softening = 0.01f;
    const Buffer<f32> x(p[0]), y(p[1]), z(p[2]), m(mass);
    auto ax = Buffer<f32>::uninitialised(x.client(), n).value(), ay = Buffer<f32>::uninitialised(x.client(), n).value(),
         az = Buffer<f32>::uninitialised(x.client(), n).value();
    samples::nbody({{(n + samples::nbody_threads - 1) / samples::nbody_threads}, {samples::nbody_threads}}, x, y, z, m, ax, ay, az,
                   softening);
    for (std::size_t i = 0; i < n; ++i) {
      double a[3] = {};
      for (std::size_t j = 0; j < n; ++j) {
        double delta[3], square = softening;
        for (int d = 0; d < 3; ++d) delta[d] = double{p[d][j]} - p[d][i], square += delta[d] * delta[d];
        for (int d = 0; d < 3; ++d) a[d] += mass[j] * delta[d] / (square * std::sqrt(square));
      }
      for (int d = 0; d < 3; ++d) want[d][i] = static_cast<f32>(a[d]);
    }
    samples::expect_near(ax.read().value(), want[0], 1e-3, 1e-2);
    samples::expect_near(ay.read().value(), want[1], 1e-3, 1e-2);
    samples::expect_near(az.read().value(), want[2], 1e-3, 1e-2);
    return std::to_string(n) + " bodies";
  });
}
