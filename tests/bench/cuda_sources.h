// The kernels of `jit` as a CUDA C++ author writes them.
#pragma once

namespace kiln::bench {

inline constexpr const char* kCudaSaxpy = R"(
extern "C" __global__ void saxpy(const float* __restrict__ x, float* y, unsigned long long n, float a) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
)";

inline constexpr const char* kCudaMatmul = R"(
constexpr unsigned kTile = 16;
extern "C" __global__ void __launch_bounds__(kTile * kTile) matmul(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                                                                   unsigned m, unsigned k_end, unsigned n) {
  __shared__ float left[kTile][kTile], right[kTile][kTile + 1];
  unsigned tx = threadIdx.x, ty = threadIdx.y;
  unsigned row = blockIdx.y * blockDim.y + ty, column = blockIdx.x * blockDim.x + tx;
  float sum = 0;
  for (unsigned k = 0; k < k_end; k += kTile) {
    left[ty][tx] = row < m && k + tx < k_end ? a[(size_t)row * k_end + k + tx] : 0;
    right[ty][tx] = k + ty < k_end && column < n ? b[(size_t)(k + ty) * n + column] : 0;
    __syncthreads();
    for (unsigned t = 0; t < kTile; ++t) sum += left[ty][t] * right[t][tx];
    __syncthreads();
  }
  if (row < m && column < n) c[(size_t)row * n + column] = sum;
}
)";

inline constexpr const char* kCudaBlockSum = R"(
constexpr unsigned kThreads = 256;
__device__ float warp_sum(float v) {
  for (int distance = 16; distance > 0; distance /= 2) v += __shfl_xor_sync(0xffffffffu, v, distance);
  return v;
}
extern "C" __global__ void __launch_bounds__(kThreads) block_sum(const float* __restrict__ x, float* __restrict__ sums, unsigned n, unsigned blocks) {
  __shared__ float parts[kThreads / 32];
  unsigned t = threadIdx.x;
  float sum = 0;
  for (unsigned i = blockIdx.x * kThreads + t; i < n; i += gridDim.x * kThreads) sum += x[i];
  sum = warp_sum(sum);
  if (t % 32 == 0) parts[t / 32] = sum;
  __syncthreads();
  if (t < 32) {
    float total = warp_sum(t < kThreads / 32 ? parts[t] : 0);
    if (t == 0 && blockIdx.x < blocks) sums[blockIdx.x] = total;
  }
}
)";

}  // namespace kiln::bench
