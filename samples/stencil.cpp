// Ten steps of diffusion on a grid, checked against the same steps in C++.
#include "kernels/stencil.h"

#include <cmath>

#include "check.h"

using namespace kiln;

namespace {

std::vector<f32> step(const std::vector<f32>& src, std::size_t rows, std::size_t cols, f32 k) {
  std::vector<f32> dst = src;
  const auto at = [&](std::size_t r, std::size_t c) { return src[r * cols + c]; };
  for (std::size_t r = 1; r + 1 < rows; ++r) {
    for (std::size_t c = 1; c + 1 < cols; ++c) {
      const f32 sum = at(r - 1, c) + at(r + 1, c) + at(r, c - 1) + at(r, c + 1);
      dst[r * cols + c] = std::fma(k, std::fma(-4.0f, at(r, c), sum), at(r, c));  // as the language contracts it
    }
  }
  return dst;
}

}  // namespace

int main() {
  return samples::check("stencil", [] {
    const std::size_t rows = 371, cols = 517, steps = 10;
    std::vector<f32> host(rows * cols);
    for (std::size_t i = 0; i < host.size(); ++i) host[i] = static_cast<f32>((i * 2654435761u >> 7) % 1000) / 8;
    Buffer<f32, 2> a(host, {rows, cols}), b(host, {rows, cols});
    for (std::size_t s = 0; s < steps; ++s) {
      samples::stencil5(cover({cols, rows}, {32, 8}), a, b, 0.2f);
      std::swap(a, b);
      host = step(host, rows, cols, 0.2f);
    }
    samples::expect_equal(a.read().value(), host);
    return std::to_string(steps) + " steps of " + std::to_string(rows) + " x " + std::to_string(cols);
  });
}
