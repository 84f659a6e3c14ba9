#include "sums.h"

#include "sums_kernels.h"

float sum_of(const std::vector<float>& numbers) {
  const std::size_t blocks = (numbers.size() + 63) / 64;
  kiln::Buffer<kiln::f32> x(numbers), sums(std::vector<float>(blocks, 0));
  detail::block_sums({{blocks}, {64}}, x, sums);
  float total = 0;
  for (const float part : sums.read().value()) total += part;
  return total;
}
