// How fast transfers and the sample kernels are. Sizes grow as long as they are quick, so that the program ends on a simulated device too.
#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <vector>

#include "kernels/histogram.h"
#include "kernels/matmul.h"
#include "kernels/reduce.h"
#include "kernels/saxpy.h"
#include "kernels/scan.h"
#include "kernels/stencil.h"
#include "kiln/kiln.h"
#include "measures.h"
#include "support/misused_ptx.h"

namespace kiln::gpu {

using namespace kiln::cuda;

namespace {

constexpr double kLong = 0.25;  // seconds: the next size would take too long

double gigabytes(double bytes, double seconds) { return bytes / seconds * 1e-9; }

// Bytes a second that the memory could move, by its clock and width; 0 where the driver no longer tells.
double nominal_bandwidth() {
  int clock = 0, width = 0;
  driver().call.cuDeviceGetAttribute(&clock, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 0);
  driver().call.cuDeviceGetAttribute(&width, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 0);
  return 2.0 * clock * 1e3 * width / 8;
}

double device_copy(const Client& client, std::size_t bytes) {
  const Memory from = rt::allocate(client, bytes).value(), to = rt::allocate(client, bytes).value();
  const Stream stream = client.stream();
  rt::fill_zero(stream, {from, {0, bytes}}).value();
  return seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) rt::copy(stream, {to, {0, bytes}}, {from, {0, bytes}}).value();
    stream.sync().value();
  });
}

}  // namespace

int launches() {
  const Client client = Client::open("cuda").value();
  const Stream stream = client.stream();
  Buffer<f32> x = Buffer<f32>::zeroed(client, 32).value(), y = Buffer<f32>::zeroed(client, 32).value();
  const LaunchConfig config32{{1}, {32}};
  const double compiled = now();
  samples::saxpy(stream, config32, x, y, 2.5f).value();
  stream.sync().value();
  say("the first launch of a kernel, compiled, loaded and waited for: %.2f ms", (now() - compiled) * 1e3);
  // The driver's own call, with everything prepared, of a kernel of PTX.
  const DriverEntries& call = driver().call;
  CUcontext context = nullptr;
  CUstream own = nullptr;
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  CUdeviceptr memory = 0;
  if (call.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || call.cuCtxPushCurrent(context) != CUDA_SUCCESS ||
      call.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS || call.cuMemAlloc(&memory, 4096) != CUDA_SUCCESS ||
      call.cuMemsetD8Async(memory, 0, 4096, own) != CUDA_SUCCESS ||
      call.cuModuleLoadDataEx(&module, test::misused_ptx(test::ptx_header("8.0", "sm_75"), false).c_str(), 0, nullptr, nullptr) !=
          CUDA_SUCCESS ||
      call.cuModuleGetFunction(&function, module, "add") != CUDA_SUCCESS) {
    say("failed: nothing to launch by the driver itself");
    return 1;
  }
  void* params[] = {&memory};
  const CUlaunchConfig config{1, 1, 1, 32, 1, 1, 0, own, nullptr, 0};
  const auto bare = [&] { return call.cuLaunchKernelEx(&config, function, params, nullptr); };
  const auto kiln = [&] { samples::saxpy(stream, config32, x, y, 2.5f).value(); };
  bool well = bare() == CUDA_SUCCESS && call.cuStreamSynchronize(own) == CUDA_SUCCESS;
  // Few at a time, drained outside of the clock: it is not a queue's limit that is measured.
  const auto enqueue = [&](auto&& launch, auto&& wait) {
    constexpr int kRuns = 15, kEach = 64;
    std::vector<double> times;
    for (int run = 0; run < kRuns; ++run) {
      const double began = now();
      for (int i = 0; i < kEach; ++i) launch();
      times.push_back((now() - began) / kEach * 1e6);
      wait();
    }
    std::sort(times.begin(), times.end());
    return times[kRuns / 2];
  };
  const auto wait_own = [&] { well = call.cuStreamSynchronize(own) == CUDA_SUCCESS && well; };
  const auto wait_kiln = [&] { stream.sync().value(); };
  say("enqueue: Kiln %.2f us, the driver's own %.2f us", enqueue(kiln, wait_kiln), enqueue(bare, wait_own));
  const double both = seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) kiln(), wait_kiln();
  });
  const double both_own = seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) bare(), wait_own();
  });
  say("enqueue and wait: Kiln %.2f us, the driver's own %.2f us", both * 1e6, both_own * 1e6);
  const double row = seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) kiln();
    wait_kiln();
  });
  const double row_own = seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) bare();
    wait_own();
  });
  say("one after the other, the wait at the end: Kiln %.2f us, the driver's own %.2f us", row * 1e6, row_own * 1e6);
  return well ? 0 : 1;
}

int copies() {
  const Client client = Client::open("cuda").value();
  const Stream stream = client.stream();
  say("%-12s %14s %14s %14s", "bytes", "to device", "from device", "on device");
  for (std::size_t bytes = 4096; bytes <= std::size_t{1} << 30; bytes *= 16) {
    std::vector<std::byte> host(bytes);
    const Memory memory = rt::allocate(client, bytes).value();
    const Binding all{memory, {0, bytes}};
    const double to = seconds_each([&](int n) {
      for (int i = 0; i < n; ++i) rt::write(stream, all, host.data()).value();
      stream.sync().value();
    });
    const double from = seconds_each([&](int n) {
      for (int i = 0; i < n; ++i) rt::read(stream, all, host.data()).value();
    });
    const double on = device_copy(client, bytes);
    const double b = static_cast<double>(bytes);
    say("%-12zu %9.2f GB/s %9.2f GB/s %9.2f GB/s   (%.1f, %.1f, %.1f us)", bytes, gigabytes(b, to), gigabytes(b, from),
        gigabytes(2 * b, on), to * 1e6, from * 1e6, on * 1e6);
    if (to > kLong || from > kLong || on > kLong) break;
  }
  // The driver's own, from pinned memory: what Kiln's staging is to be compared with.
  const DriverEntries& call = driver().call;
  CUcontext context = nullptr;
  CUstream own = nullptr;
  void* pinned = nullptr;
  CUdeviceptr device = 0;
  constexpr std::size_t kPinned = std::size_t{64} << 20;
  if (call.cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS || call.cuCtxPushCurrent(context) != CUDA_SUCCESS ||
      call.cuStreamCreate(&own, CU_STREAM_NON_BLOCKING) != CUDA_SUCCESS ||
      call.cuMemHostAlloc(&pinned, kPinned, CU_MEMHOSTALLOC_PORTABLE) != CUDA_SUCCESS ||
      call.cuMemAlloc(&device, kPinned) != CUDA_SUCCESS) {
    say("failed: no stream or memory for pinned copies");
    return 1;
  }
  std::memset(pinned, 1, kPinned);
  const double up = seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) call.cuMemcpyHtoDAsync(device, pinned, kPinned, own);
    call.cuStreamSynchronize(own);
  });
  const double down = seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) call.cuMemcpyDtoHAsync(pinned, device, kPinned, own);
    call.cuStreamSynchronize(own);
  });
  say("pinned, by the driver, 64 MiB: to device %.2f GB/s, from device %.2f GB/s", gigabytes(kPinned, up), gigabytes(kPinned, down));
  std::size_t small = 0;
  const double wait = seconds_each([&](int n) {
    for (int i = 0; i < n; ++i) small += call.cuStreamSynchronize(own) == CUDA_SUCCESS;
  });
  say("waiting for a stream with nothing to do: %.2f us", wait * 1e6);
  return small != 0 ? 0 : 1;
}

int kernels() {
  const Client client = Client::open("cuda").value();
  const Stream stream = client.stream();
  double copied = 0;  // bytes a second of a copy on the device, each read and written
  const auto measured = [&](auto&& enqueue) {
    return seconds_each([&](int n) {
      for (int i = 0; i < n; ++i) enqueue();
      stream.sync().value();
    });
  };
  const auto said = [&](const char* name, std::size_t elements, double bytes, double seconds) {
    say("%-12s %10zu elements: %10.1f us, %8.1f GB/s, %5.1f %% of a copy on the device", name, elements, seconds * 1e6,
        gigabytes(bytes, seconds), 100 * bytes / seconds / copied);
  };
  bool going = true;
  for (std::size_t n = std::size_t{1} << 14; going && n <= std::size_t{1} << 26; n *= 16) {
    const double b = static_cast<double>(n * sizeof(f32));
    const double copy = device_copy(client, n * sizeof(f32));
    copied = 2 * b / copy;
    say("copy         %10zu elements: %10.1f us, %8.1f GB/s, nominal %.1f GB/s", n, copy * 1e6, copied * 1e-9, nominal_bandwidth() * 1e-9);
    Buffer<f32> x = Buffer<f32>::zeroed(client, n).value(), y = Buffer<f32>::zeroed(client, n).value();
    double longest = 0;
    const auto row = [&](const char* name, double bytes, auto&& enqueue) {
      const double t = measured(enqueue);
      longest = std::max(longest, t);
      said(name, n, bytes, t);
    };
    row("saxpy", 3 * b, [&] { samples::saxpy(stream, for_num_elems(n), x, y, 2.5f).value(); });
    const std::size_t side = std::size_t{1} << (std::bit_width(n) - 1) / 2;
    Buffer<f32, 2> src = Buffer<f32, 2>::zeroed(client, side, n / side).value(),
                   dst = Buffer<f32, 2>::zeroed(client, side, n / side).value();
    row("stencil5", 2 * b, [&] { samples::stencil5(stream, cover({n / side, side}, {32, 8}), src, dst, 0.1f).value(); });
    const std::size_t blocks = std::min<std::size_t>(n / samples::reduce_threads, 132 * 16);
    Buffer<f32> partial = Buffer<f32>::zeroed(client, blocks).value();
    row("block_sum", b, [&] { samples::block_sum(stream, {{blocks}, {samples::reduce_threads}}, x, partial).value(); });
    Buffer<i32> ints = Buffer<i32>::zeroed(client, n).value(), sums = Buffer<i32>::zeroed(client, n).value(),
                totals = Buffer<i32>::zeroed(client, n / samples::scan_threads).value();
    row("scan_block", 2 * b,
        [&] { samples::scan_block(stream, {{n / samples::scan_threads}, {samples::scan_threads}}, ints, sums, totals).value(); });
    std::vector<u32> keys(n);
    for (std::size_t i = 0; i < n; ++i) keys[i] = static_cast<u32>(i * 2654435761u >> 26);
    Buffer<u32> k = Buffer<u32>::from_host(client, keys).value(), bins = Buffer<u32>::zeroed(client, samples::histogram_bins).value();
    row("histogram", b, [&] { samples::histogram(stream, for_num_elems(n), k, bins).value(); });
    going = longest < kLong / 16;
  }
  going = true;
  for (std::size_t side = 64; going && side <= 4096; side *= 4) {
    Buffer<f32, 2> a = Buffer<f32, 2>::zeroed(client, side, side).value(), b = Buffer<f32, 2>::zeroed(client, side, side).value();
    Buffer<f32, 2> c = Buffer<f32, 2>::zeroed(client, side, side).value();
    const auto space = samples::matmul_space();
    double longest = 0;
    for (const samples::MatmulCfg& config : space.configs()) {
      const auto launch = space.launch_for(config, {side, side});
      const double t = measured([&] { samples::matmul.with(config)(stream, launch, a, b, c).value(); });
      longest = std::max(longest, t);
      say("matmul       %zu x %zu, tile %u, unroll %u: %.1f us, %.2f GFLOP/s", side, side, config.tile, config.unroll, t * 1e6,
          2e-9 * static_cast<double>(side) * static_cast<double>(side) * static_cast<double>(side) / t);
    }
    going = longest < kLong / 64;
  }
  return 0;
}

}  // namespace kiln::gpu
