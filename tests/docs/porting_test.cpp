// The pairs of docs/porting.md: the CUDA side runs on the host (cuda_words.h), the Kiln side everywhere, and the results are the same.
#include "docs/examples.h"

// Behind all others: it defines assert.
#include "docs/cuda_words.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_porting_cuda {

using namespace kiln::test::cuda_words;
using kiln::test::cuda_words::printf;  // not that of the host

// example: cuda saxpy
__global__ void saxpy(unsigned n, const float* x, float* y, float a) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
}
// end

// example: cuda block sums
__global__ void block_sums(unsigned n, const float* x, float* sums) {
  __shared__ float s[128];
  unsigned t = threadIdx.x, i = blockIdx.x * blockDim.x + t;
  s[t] = i < n ? x[i] : 0;
  for (unsigned half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) s[t] += s[t + half];
  }
  if (t == 0) sums[blockIdx.x] = s[0];
}
// end

// example: cuda histogram
__global__ void histogram(unsigned n, const unsigned char* x, unsigned* bins) {
  unsigned step = blockDim.x * gridDim.x;
  for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) atomicAdd(&bins[x[i]], 1u);
}
// end

// example: cuda warp sums
__global__ void warp_sums(unsigned n, const int* x, int* sums) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  int v = i < n ? x[i] : 0;
  for (int d = 16; d > 0; d /= 2) v += __shfl_down_sync(0xffffffff, v, d);
  if (threadIdx.x % 32 == 0) sums[i / 32] = v;
}
// end

// example: cuda power
template <int kExponent>
__global__ void power(unsigned n, const float* x, float* y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float p = 1;
  for (int k = 0; k < kExponent; ++k) p *= x[i];
  y[i] = p;
}
// end

// example: cuda roots
__global__ void roots(unsigned n, const float* x, float* y) {
  unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  assert(x[i] >= 0);
  if (x[i] > 100) printf("x[%u] = %g\n", i, x[i]);
  y[i] = sqrtf(x[i]);
}
// end

}  // namespace docs_porting_cuda

namespace docs_porting {

// example: saxpy
KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}
// end

// example: block sums
KILN_KERNEL(block_sums, (In<f32> x, Out<f32> sums))
{
  block_size(128);
  Shared<f32> s(128);
  auto t = thread_id().x, i = global_id().x;
  If (i < x.size()) { s[t] = x[i]; }
  Else { s[t] = 0; }
  for (u32 half = 64; half > 0; half /= 2) {  // of the host: recorded seven times
    barrier();
    If (t < half) { s[t] += s[t + half]; }
  }
  If (t == 0) { sums[block_id().x] = s[0]; }
}
// end

// example: histogram
KILN_KERNEL(histogram, (In<u8> x, InOut<u32> bins))
{
  require(bins.size() == 256);  // so that no u8 is out of range
  for (auto i : range(global_id().x, x.size(), block_dim().x * grid_dim().x)) { bins.atomic_add(x[i], 1); }
}
// end

// example: warp sums
KILN_KERNEL(warp_sums, (In<i32> x, Out<i32> sums))
{
  auto i = global_id().x;
  Var<i32> v = 0;
  If (i < x.size()) { v = x[i]; }
  Val<i32> sum = warp::sum(v);  // all lanes get it; no mask: of the lanes that are here
  If (lane_id() == 0) { sums[i / warp::size] = sum; }
}
// end

// example: power
struct PowerCfg {
  i32 exponent = 2;
};
KILN_CONFIG(PowerCfg, exponent)

KILN_KERNEL(power, (const PowerCfg& cfg, In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  If (i >= y.size() || i >= x.size()) { Return(); }
  Var<f32> p = 1;
  for (i32 k = 0; k < cfg.exponent; ++k) p *= x[i];
  y[i] = p;
}
// end

// example: roots
KILN_KERNEL(roots, (In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  If (i >= y.size() || i >= x.size()) { Return(); }
  check(x[i] >= 0, "x[{}] is {}", i, x[i]);
  If (x[i] > 100) { log("x[{}] = {:g}", i, x[i]); }
  y[i] = sqrt(x[i]);
}
// end

}  // namespace docs_porting

namespace {

std::vector<f32> small_numbers(std::size_t n) {
  std::vector<f32> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<f32>(i % 11) - 3;
  return x;
}

}  // namespace

TEST_CASE("docs/porting: a thread for each element") {
  const unsigned n = 300;
  const std::vector<f32> x = small_numbers(n);
  std::vector<f32> y(n, 2);
  cuda_words::launch(2, 256, docs_porting_cuda::saxpy, n, x.data(), y.data(), 3.0f);
  CHECK(y[299] == 3 * x[299] + 2);
  check_example<f32>(docs_porting::saxpy, {{2}, {256}}, {buffer(x), filled<f32>(n, 2), scalar<f32>(3)}, 1, y);
}

TEST_CASE("docs/porting: shared memory and barriers") {
  const unsigned n = 300;
  const std::vector<f32> x = small_numbers(n);
  std::vector<f32> sums(3);
  cuda_words::launch(3, 128, docs_porting_cuda::block_sums, n, x.data(), sums.data());
  CHECK(sums[0] != 0);
  check_example<f32>(docs_porting::block_sums, {{3}, {128}}, {buffer(x), filled<f32>(3, 0)}, 1, sums);
}

TEST_CASE("docs/porting: atomics") {
  const unsigned n = 1000;
  std::vector<u8> x(n);
  for (unsigned i = 0; i < n; ++i) x[i] = static_cast<u8>(i * i);
  std::vector<u32> bins(256);
  cuda_words::launch(2, 64, docs_porting_cuda::histogram, n, x.data(), bins.data());
  CHECK(bins[0] > 1);
  check_example<u32>(docs_porting::histogram, {{2}, {64}}, {buffer(x), filled<u32>(256, 0)}, 1, bins);
}

TEST_CASE("docs/porting: warps") {
  const unsigned n = 100;
  std::vector<i32> x(n);
  for (unsigned i = 0; i < n; ++i) x[i] = static_cast<i32>(i) - 30;
  std::vector<i32> sums(4);
  cuda_words::launch(2, 64, docs_porting_cuda::warp_sums, n, x.data(), sums.data());
  CHECK(sums[3] == 66 + 67 + 68 + 69);
  check_example<i32>(docs_porting::warp_sums, {{2}, {64}}, {buffer(x), filled<i32>(4, 0)}, 1, sums);
}

TEST_CASE("docs/porting: template parameters") {
  const unsigned n = 40;
  const std::vector<f32> x = small_numbers(n);
  std::vector<f32> y(n);
  cuda_words::launch(1, 64, docs_porting_cuda::power<3>, n, x.data(), y.data());
  CHECK(y[0] == -27);
  check_example_with<f32>(docs_porting::power, docs_porting::PowerCfg{.exponent = 3}, {{1}, {64}}, {buffer(x), filled<f32>(n, 0)}, 1, y);
}

TEST_CASE("docs/porting: printf and assert") {
  const std::vector<f32> x{4, 144, 9};
  std::vector<f32> wanted(3);
  cuda_words::launch(1, 32, docs_porting_cuda::roots, 3u, x.data(), wanted.data());
  CHECK(cuda_words::asserted.empty());
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    auto a = Buffer<f32>::from_host(c, x).value(), y = Buffer<f32>::zeroed(c, 3).value();
    std::vector<Line> lines;
    const Listening listening(c, lines);
    docs_porting::roots(for_num_elems(3), a, y);
    CHECK(y.read().value() == wanted);
    REQUIRE(lines.size() == 1);
    CHECK(lines[0].text + "\n" == cuda_words::printed);
    a.write({4, -1, 9});
    docs_porting::roots(for_num_elems(3), a, y);
    check_text("porting_check", y.read().error().text());
    docs_porting::roots(for_num_elems(3), Buffer<f32>::from_host(c, x).value(), y);  // as if nothing had been
    CHECK(y.read().value() == wanted);
  }
  const std::vector<f32> bad{4, -1, 9};
  cuda_words::launch(1, 32, docs_porting_cuda::roots, 3u, bad.data(), wanted.data());
  CHECK(cuda_words::asserted == "x[i] >= 0");
}

TEST_CASE("docs/porting: the host side") {
  using docs_porting::saxpy;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const std::vector<f32> ones(1000, 1);
    // example: host
    const Stream s = client.stream(), other = client.stream();                         // cudaStreamCreate
    auto x = Buffer<f32>::from_host(client, ones).value();                             // cudaMalloc, and cudaMemcpy to the device
    auto y = Buffer<f32>::zeroed(client, 1000).value();                                // cudaMalloc and cudaMemset
    auto z = Buffer<f32>::uninitialised(client, 1000).value();                         // cudaMalloc
    saxpy(s, {{4}, {256}}, x, y, 2.0f);                                                // saxpy<<<4, 256, 0, s>>>(1000, x, y, 2)
    const Event there = s.record();                                                    // cudaEventRecord
    other.wait(there);                                                                 // cudaStreamWaitEvent; for y alone it is not needed
    StridedView(z).copy_from(other, y);                                                // cudaMemcpyAsync on the device
    const auto time = profile(s, [&] { return saxpy(s, {{4}, {256}}, x, y, 2.0f); });  // cudaEventElapsedTime
    there.sync().value();                                                              // cudaEventSynchronize
    s.sync().value();                                                                  // cudaStreamSynchronize
    client.sync().value();                                                             // cudaDeviceSynchronize
    const std::vector<f32> result = z.read().value();                                  // cudaMemcpy to the host: waits
    // The buffers free their memory when they go: cudaFree.
    // end
    CHECK(time.has_value());
    CHECK(result == std::vector<f32>(1000, 2));
    CHECK(y.read().value() == std::vector<f32>(1000, 4));
  }
}

TEST_CASE("docs/porting: errors of launches") {
  using docs_porting::saxpy;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto x = Buffer<f32>::zeroed(client, 10).value();
    auto y = Buffer<f32>::zeroed(client, 1000).value();
    // example: errors
    const Result<void> launched = saxpy(for_num_elems(1000), x, y, 2.0f);         // the answer of this launch, not of the last one
    const std::string why = launched.has_value() ? "" : launched.error().text();  // cudaGetLastError, cudaGetErrorString
    const Result<std::vector<f32>> values = y.read();                             // has what went wrong while the kernel ran
    // end
    check_text("porting_require", why);
    CHECK(values.has_value());
  }
}
