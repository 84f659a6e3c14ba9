#include "peers.h"

namespace kiln::bench::peers {

void saxpy(const float* x, float* y, float a, std::size_t n) {
  for (std::size_t i = 0; i < n; ++i) y[i] = a * x[i] + y[i];
}

void stencil5(const float* in, float* out, float k, std::size_t rows, std::size_t columns) {
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < columns; ++c) {
      const std::size_t i = r * columns + c;
      if (r > 0 && r + 1 < rows && c > 0 && c + 1 < columns)
        out[i] = in[i] + k * (in[i - columns] + in[i + columns] + in[i - 1] + in[i + 1] - 4 * in[i]);
      else out[i] = in[i];
    }
  }
}

void matmul(const float* a, const float* b, float* c, std::size_t m, std::size_t k, std::size_t n) {
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      float sum = 0;
      for (std::size_t t = 0; t < k; ++t) sum += a[i * k + t] * b[t * n + j];
      c[i * n + j] = sum;
    }
  }
}

float reduce(const float* x, std::size_t n) {
  float sum = 0;
  for (std::size_t i = 0; i < n; ++i) sum += x[i];
  return sum;
}

void histogram(const std::uint32_t* x, std::uint32_t* bins, std::size_t n, std::size_t bin_count) {
  for (std::size_t i = 0; i < n; ++i)
    if (x[i] < bin_count) ++bins[x[i]];
}

}  // namespace kiln::bench::peers
