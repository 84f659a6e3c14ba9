// The scalar loops that `cpu` is held against: plain C++, one thread, compiled with -O3.
#pragma once
#include <cstddef>
#include <cstdint>

namespace kiln::bench::peers {

void saxpy(const float* x, float* y, float a, std::size_t n);
void stencil5(const float* in, float* out, float k, std::size_t rows, std::size_t columns);
void matmul(const float* a, const float* b, float* c, std::size_t m, std::size_t k, std::size_t n);
float reduce(const float* x, std::size_t n);
void histogram(const std::uint32_t* x, std::uint32_t* bins, std::size_t n, std::size_t bin_count);

}  // namespace kiln::bench::peers
