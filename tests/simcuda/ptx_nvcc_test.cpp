// Plain CUDA C++ kernels, compiled by nvcc where it is installed: PTX that nobody here wrote.
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>

#include "simcuda/ptx_testing.h"

using namespace kiln::simcuda;
using namespace kiln::simcuda::testing;
namespace cuda = kiln::cuda;

namespace {

const char* const kNvcc = "/usr/local/cuda/bin/nvcc";

const char* const kSource = R"cuda(
#include <cassert>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

extern "C" __global__ void reduce(const float* x, float* out, int n) {
  __shared__ float part[32];
  float s = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) s += x[i];
  for (int o = 16; o > 0; o >>= 1) s += __shfl_down_sync(~0u, s, o);
  if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
  __syncthreads();
  if (threadIdx.x < 32) {
    s = threadIdx.x < blockDim.x / 32 ? part[threadIdx.x] : 0.0f;
    for (int o = 16; o > 0; o >>= 1) s += __shfl_xor_sync(~0u, s, o);
    if (threadIdx.x == 0) atomicAdd(out, s);
  }
}

extern "C" __global__ void matmul(const float* a, const float* b, float* c, int n) {
  __shared__ float ta[16][17], tb[16][17];
  int row = blockIdx.y * 16 + threadIdx.y, col = blockIdx.x * 16 + threadIdx.x;
  float s = 0;
  for (int t = 0; t < n; t += 16) {
    ta[threadIdx.y][threadIdx.x] = row < n && t + threadIdx.x < n ? a[row * n + t + threadIdx.x] : 0;
    tb[threadIdx.y][threadIdx.x] = col < n && t + threadIdx.y < n ? b[(t + threadIdx.y) * n + col] : 0;
    __syncthreads();
    for (int k = 0; k < 16; ++k) s += ta[threadIdx.y][k] * tb[k][threadIdx.x];
    __syncthreads();
  }
  if (row < n && col < n) c[row * n + col] = s;
}

extern "C" __global__ void histogram(const unsigned char* in, unsigned* bins, int n) {
  extern __shared__ unsigned local[];
  for (int i = threadIdx.x; i < 256; i += blockDim.x) local[i] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i]], 1u);
  __syncthreads();
  for (int i = threadIdx.x; i < 256; i += blockDim.x) atomicAdd(&bins[i], local[i]);
}

extern "C" __global__ void halves(const float* a, const float* b, float* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  __half x = __float2half_rn(a[i]), y = __float2half_rn(b[i]);
  out[4 * i] = __half2float(__hfma(x, y, x));
  out[4 * i + 1] = __half2float(__hadd(x, y));
  __half2 p = __halves2half2(x, y);
  p = __hmul2(p, p);
  out[4 * i + 2] = __high2float(p);
  __nv_bfloat16 u = __float2bfloat16_rn(a[i]), v = __float2bfloat16_rn(b[i]);
#if __CUDA_ARCH__ >= 800
  out[4 * i + 3] = __bfloat162float(__hfma(u, v, u));
#else
  out[4 * i + 3] = __bfloat162float(__float2bfloat16_rn(fmaf(__bfloat162float(u), __bfloat162float(v), __bfloat162float(u))));
#endif
}

extern "C" __global__ void divide(const long long* a, const long long* b, long long* out, int n) {
  int i = threadIdx.x;
  if (i >= n) return;
  out[4 * i] = a[i] / b[i];
  out[4 * i + 1] = a[i] % b[i];
  out[4 * i + 2] = (long long)((unsigned long long)a[i] / (unsigned long long)b[i]);
  out[4 * i + 3] = (long long)__umul64hi((unsigned long long)a[i], (unsigned long long)b[i]);
}

extern "C" __global__ void math(const float* x, float* out, const double* xd, double* outd, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float v = x[i];
  out[8 * i] = sinf(v);
  out[8 * i + 1] = expf(v * 0.01f);
  out[8 * i + 2] = powf(fabsf(v) + 0.5f, 1.7f);
  out[8 * i + 3] = logf(fabsf(v) + 1e-20f);
  out[8 * i + 4] = tanhf(v);
  out[8 * i + 5] = cosf(v * 100000.0f);
  out[8 * i + 6] = v / 3.0f;
  out[8 * i + 7] = sqrtf(fabsf(v));
  double d = xd[i];
  outd[6 * i] = sin(d);
  outd[6 * i + 1] = exp(d * 0.1);
  outd[6 * i + 2] = pow(fabs(d) + 0.25, -2.3);
  outd[6 * i + 3] = log(fabs(d) + 0.125);
  outd[6 * i + 4] = d / 7.0;
  outd[6 * i + 5] = sqrt(fabs(d));
}

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
struct Pair { int a; double b; char c[5]; };
__device__ __noinline__ Pair make(int a) {
  Pair p;
  p.a = a;
  p.b = a * 0.5;
  for (int i = 0; i < 5; ++i) p.c[i] = (char)(a + i);
  return p;
}
__device__ int twice(int v) { return 2 * v; }
__device__ int square(int v) { return v * v; }
typedef int (*Function)(int);
__device__ Function functions[2] = {twice, square};
extern "C" __global__ void calls(int* out, Pair extra) {
  int i = threadIdx.x;
  Pair p = make(i + extra.a);
  out[i] = fib(i % 9) + p.c[i % 5] + (int)p.b + functions[i % 2](i);
}

extern "C" __global__ void cases(int* out, int w) {
  int i = threadIdx.x, local[8];
  for (int k = 0; k < 8; ++k) local[k] = k * w + i;
  int r = 0;
  switch (i % 9) {
    case 0: r = local[i & 7]; break;
    case 1: r = 17; break;
    case 2: r = local[(i + w) & 7] * 2; break;
    case 3: r = i * i; break;
    case 4: r = -i; break;
    case 5: r = i ^ w; break;
    case 6: r = local[3]; break;
    case 7: r = w / (i + 1); break;
    default: r = 99;
  }
  out[i] = r;
}

extern "C" __global__ void talk(int n) {
  if (threadIdx.x < n) printf("thread %d of %s: %5.2f %llx %c\n", (int)threadIdx.x, "block", threadIdx.x * 1.5, 0x123456789abcull, 'x');
}
extern "C" __global__ void insist(int n) { assert((int)threadIdx.x != n); }

__constant__ float coefficients[4] = {1.0f, 2.0f, 4.0f, 8.0f};
__device__ unsigned counter = 5;
extern "C" __global__ void statics(float* out) {
  int i = threadIdx.x;
  out[i] = coefficients[i % 4] + (float)(atomicInc(&counter, 1000000u) >= 5);
  unsigned mask = __ballot_sync(~0u, i % 3 == 0);
  if (i == 0) out[32] = (float)__popc(mask) + (float)__clz(mask);
}
)cuda";

struct Compiled {
  std::string ptx;
  bool available = false;
};

Compiled compile(const std::string& arch) {
  Compiled c;
  if (access(kNvcc, X_OK) != 0) return c;
  c.available = true;
  const auto folder = std::filesystem::path(KILN_BINARY_DIR) / "simcuda_nvcc";
  std::filesystem::create_directories(folder);
  const auto base = folder / ("kernels_" + arch + "_" + std::to_string(getpid()));
  std::ofstream(base.string() + ".cu") << kSource;
  const std::string command = std::string(kNvcc) + " -lineinfo -ptx -arch=" + arch + " -o " + base.string() + ".ptx " + base.string() +
                              ".cu 2>" + base.string() + ".log";
  const int rc = std::system(command.c_str());
  std::stringstream log;
  log << std::ifstream(base.string() + ".log").rdbuf();
  INFO(log.str());
  CHECK(rc == 0);
  std::stringstream text;
  text << std::ifstream(base.string() + ".ptx").rdbuf();
  c.ptx = text.str();
  for (const char* end : {".cu", ".ptx", ".log"}) std::filesystem::remove(base.string() + end);
  return c;
}

// Compiled once for each target; a module for each test. Empty where there is no nvcc.
LoadResult module_for(const std::string& arch) {
  static const Compiled old = compile("sm_75"), recent = compile("sm_90");
  const Compiled& c = arch == "sm_75" ? old : recent;
  if (!c.available) return {};
  const LoadResult r = load_text(c.ptx);
  INFO(r.failure.log);
  CHECK(r.module != nullptr);
  return r;
}

// The test for both targets, or nothing without nvcc.
void each(const std::function<void(const LoadResult&)>& test) {
  for (const char* arch : {"sm_75", "sm_90"}) {
    const LoadResult m = module_for(arch);
    CHECK((m.module != nullptr) == (access(kNvcc, X_OK) == 0));
    if (m.module != nullptr) test(m);
  }
}

void fine(const RunResult& r) {
  if (r.violation) FAIL(r.violation->text());
  for (const std::string& note : r.notes) FAIL_CHECK(note);
}

std::vector<float> floats(std::size_t n) {
  std::vector<float> v(n);
  for (std::size_t k = 0; k < n; ++k) v[k] = static_cast<float>(static_cast<int>(k * 37 % 201) - 100) * 0.125f;
  return v;
}

std::uint64_t ulps(float a, float b) {
  if (a != a && b != b) return 0;
  const auto order = [](float v) {
    const auto u = std::bit_cast<std::int32_t>(v);
    return static_cast<std::int64_t>(u < 0 ? INT32_MIN - u : u);
  };
  return static_cast<std::uint64_t>(std::llabs(order(a) - order(b)));
}
std::uint64_t ulps(double a, double b) {
  if (a != a && b != b) return 0;
  const auto order = [](double v) {
    const auto u = std::bit_cast<std::int64_t>(v);
    return static_cast<__int128>(u < 0 ? INT64_MIN - u : u);
  };
  const __int128 d = order(a) - order(b);
  return static_cast<std::uint64_t>(d < 0 ? -d : d);
}

}  // namespace

TEST_CASE("nvcc: a reduction with shuffles, shared memory and an atomic") {
  each([](const LoadResult& m) {
    std::vector<float> x(5000);
    for (std::size_t k = 0; k < x.size(); ++k) x[k] = static_cast<float>(k % 100);
    const Device<float> in(x), out(std::vector<float>{0});
    fine(launch(m, "reduce", {{4, 1, 1}, {256, 1, 1}}, Arguments().add(in.address()).add(out.address()).add(5000)));
    CHECK(out.get()[0] == std::accumulate(x.begin(), x.end(), 0.0f));  // integers below 2^24: exact in any order
  });
}

TEST_CASE("nvcc: a product of matrices through tiles of shared memory") {
  each([](const LoadResult& m) {
    const int n = 40;
    const std::vector<float> a = floats(n * n), b = floats(n * n + 7);
    const Device<float> da(a), db(b), dc(std::vector<float>(n * n, 0));
    fine(launch(m, "matmul", {{3, 3, 1}, {16, 16, 1}}, Arguments().add(da.address()).add(db.address()).add(dc.address()).add(n)));
    const std::vector<float> c = dc.get();
    for (int r = 0; r < n; ++r)
      for (int q = 0; q < n; ++q) {
        float s = 0;
        for (int k = 0; k < n; ++k) s = std::fma(a[static_cast<std::size_t>(r * n + k)], b[static_cast<std::size_t>(k * n + q)], s);
        CHECK(c[static_cast<std::size_t>(r * n + q)] == s);
      }
  });
}

TEST_CASE("nvcc: a histogram in dynamic shared memory") {
  each([](const LoadResult& m) {
    std::vector<std::uint8_t> in(4001);
    std::vector<u32> want(256, 0);
    for (std::size_t k = 0; k < in.size(); ++k) ++want[in[k] = static_cast<std::uint8_t>(k * k % 251)];
    const Device<std::uint8_t> di(in);
    const Device<u32> bins(std::vector<u32>(256, 0));
    fine(launch(m, "histogram", {{3, 1, 1}, {128, 1, 1}, 1024}, Arguments().add(di.address()).add(bins.address()).add(4001)));
    CHECK(bins.get() == want);
  });
}

TEST_CASE("nvcc: half and bfloat16 arithmetic is the same for both targets and exact where it can be") {
  std::vector<std::vector<float>> results;
  each([&](const LoadResult& m) {
    const std::vector<float> a = floats(300), b = floats(301);
    const Device<float> da(a), db(b), out(std::vector<float>(1200, -1));
    fine(launch(m, "halves", {{3, 1, 1}, {128, 1, 1}}, Arguments().add(da.address()).add(db.address()).add(out.address()).add(300)));
    results.push_back(out.get());
    for (std::size_t k = 0; k < 300; ++k) CHECK(results.back()[4 * k + 1] == a[k] + b[k]);  // multiples of 1/8 below 32: exact
  });
  if (results.size() == 2) CHECK(results[0] == results[1]);
}

TEST_CASE("nvcc: 64-bit division") {
  each([](const LoadResult& m) {
    const std::vector<std::int64_t> a{100, -100, INT64_MAX, INT64_MIN, 1234567890123456789, -7, 0, 1},
        b{7, 7, -3, 3, 987654321, -1234567890123, 5, INT64_MAX};
    const Device<std::int64_t> da(a), db(b), out(std::vector<std::int64_t>(32, 0));
    fine(launch(m, "divide", {{1, 1, 1}, {32, 1, 1}}, Arguments().add(da.address()).add(db.address()).add(out.address()).add(8)));
    const auto r = out.get();
    for (std::size_t k = 0; k < 8; ++k) {
      CHECK(r[4 * k] == a[k] / b[k]);
      CHECK(r[4 * k + 1] == a[k] % b[k]);
      CHECK(static_cast<u64>(r[4 * k + 2]) == static_cast<u64>(a[k]) / static_cast<u64>(b[k]));
      CHECK(static_cast<u64>(r[4 * k + 3]) ==
            static_cast<u64>((static_cast<unsigned __int128>(static_cast<u64>(a[k])) * static_cast<u64>(b[k])) >> 64));
    }
  });
}

TEST_CASE("nvcc: its mathematical functions are as near to the exact value as documented") {
  each([](const LoadResult& m) {
    const std::vector<float> x = floats(400);
    std::vector<double> xd(400);
    for (std::size_t k = 0; k < 400; ++k) xd[k] = static_cast<double>(x[k]) * 1.37 + 0.01;
    const Device<float> dx(x), out(std::vector<float>(3200, -1));
    const Device<double> dxd(xd), outd(std::vector<double>(2400, -1));
    fine(launch(m, "math", {{4, 1, 1}, {128, 1, 1}},
                Arguments().add(dx.address()).add(out.address()).add(dxd.address()).add(outd.address()).add(400)));
    const auto f = out.get();
    const auto d = outd.get();
    for (std::size_t k = 0; k < 400; ++k) {
      const double v = x[k];
      CHECK(ulps(f[8 * k], static_cast<float>(std::sin(v))) <= 2);
      CHECK(ulps(f[8 * k + 1], static_cast<float>(std::exp(static_cast<double>(x[k] * 0.01f)))) <= 2);
      CHECK(ulps(f[8 * k + 2], static_cast<float>(std::pow(static_cast<double>(std::fabs(x[k]) + 0.5f), static_cast<double>(1.7f)))) <= 4);
      CHECK(ulps(f[8 * k + 3], static_cast<float>(std::log(static_cast<double>(std::fabs(x[k]) + 1e-20f)))) <= 2);
      CHECK(ulps(f[8 * k + 4], static_cast<float>(std::tanh(v))) <= 2);
      CHECK(ulps(f[8 * k + 5], static_cast<float>(std::cos(static_cast<double>(x[k] * 100000.0f)))) <= 2);
      CHECK(f[8 * k + 6] == x[k] / 3.0f);
      CHECK(f[8 * k + 7] == std::sqrt(std::fabs(x[k])));
      CHECK(ulps(d[6 * k], std::sin(xd[k])) <= 2);
      CHECK(ulps(d[6 * k + 1], std::exp(xd[k] * 0.1)) <= 2);
      CHECK(ulps(d[6 * k + 2], std::pow(std::fabs(xd[k]) + 0.25, -2.3)) <= 3);
      CHECK(ulps(d[6 * k + 3], std::log(std::fabs(xd[k]) + 0.125)) <= 2);
      CHECK(d[6 * k + 4] == xd[k] / 7.0);
      CHECK(d[6 * k + 5] == std::sqrt(std::fabs(xd[k])));
    }
  });
}

TEST_CASE("nvcc: recursion, structures by value, pointers to functions, local arrays and switches") {
  each([](const LoadResult& m) {
    struct Pair {
      int a;
      double b;
      char c[5];
    } extra{3, 0, {}};
    const Device<int> out(std::vector<int>(64, 0));
    fine(launch(m, "calls", {{1, 1, 1}, {64, 1, 1}}, Arguments().add(out.address()).add(extra)));
    const std::vector<int> r = out.get();
    const std::function<int(int)> fib = [&](int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); };
    for (int i = 0; i < 64; ++i)
      CHECK(r[static_cast<std::size_t>(i)] == fib(i % 9) + (i + 3 + i % 5) + (i + 3) / 2 + (i % 2 == 0 ? 2 * i : i * i));
    fine(launch(m, "cases", {{1, 1, 1}, {64, 1, 1}}, Arguments().add(out.address()).add(5)));
    const std::vector<int> c = out.get();
    for (int i = 0; i < 64; ++i) {
      const auto local = [&](int k) { return k * 5 + i; };
      const int want[] = {local(i & 7), 17, local((i + 5) & 7) * 2, i * i, -i, i ^ 5, local(3), 5 / (i + 1), 99};
      CHECK(c[static_cast<std::size_t>(i)] == want[i % 9]);
    }
  });
}

TEST_CASE("nvcc: printf, assert, constants and device variables") {
  each([](const LoadResult& m) {
    const RunResult r = launch(m, "talk", {{1, 1, 1}, {32, 1, 1}}, Arguments().add(2));
    fine(r);
    CHECK(r.printed == "thread 0 of block:  0.00 123456789abc x\nthread 1 of block:  1.50 123456789abc x\n");
    const RunResult a = launch(m, "insist", {{1, 1, 1}, {32, 1, 1}}, Arguments().add(7));
    REQUIRE(a.violation.has_value());
    CHECK(a.violation->code == cuda::CUDA_ERROR_ASSERT);
    CHECK(a.violation->what.find("thread: [7,0,0] Assertion `(int)threadIdx.x != n` failed.") != std::string::npos);
    CHECK(a.violation->source.find(".cu:") != std::string::npos);
    fine(launch(m, "insist", {{1, 1, 1}, {32, 1, 1}}, Arguments().add(32)));
    const Device<float> out(std::vector<float>(33, 0));
    fine(launch(m, "statics", {{1, 1, 1}, {32, 1, 1}}, Arguments().add(out.address())));
    const auto v = out.get();
    for (std::size_t i = 0; i < 32; ++i) CHECK(v[i] == static_cast<float>(1 << (i % 4)) + 1);
    CHECK(v[32] == 11.0f + 1.0f);
    u32 counter = 0;
    std::memcpy(&counter, memory().access(global(*m.module, "counter")->address, 4, Access::Read).host, 4);
    CHECK(counter == 37);
  });
}
