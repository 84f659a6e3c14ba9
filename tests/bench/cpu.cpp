#include <cmath>
#include <stdexcept>

#include "benches.h"
#include "kernels.h"
#include "measure.h"
#include "peers.h"

namespace kiln::bench {
namespace {

constexpr int kRuns = 20;

[[noreturn]] void differ(const char* name) {
  throw std::runtime_error(std::string("cpu: the results of ") + name + " differ from the loop's");
}

void check_close(const char* name, const std::vector<f32>& ours, const std::vector<f32>& theirs, float tolerance) {
  for (std::size_t i = 0; i < ours.size(); ++i)
    if (!(std::abs(ours[i] - theirs[i]) <= tolerance * (1 + std::abs(theirs[i])))) differ(name);
}

std::vector<f32> ramp(std::size_t n) {
  std::vector<f32> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<f32>(i % 1000) * 0.001f;
  return values;
}

Row start(const char* name) {
  Row r;
  r.name = name;
  r.unit = "ms";
  r.peer_name = "g++ -O3 loop, one thread";
  return r;
}

Row saxpy_row(const Stream& stream) {
  constexpr std::size_t n = std::size_t{1} << 24;
  std::vector<f32> hx = ramp(n), hy(n, 1.0f);
  auto x = Buffer<f32>::from_host(stream.client(), hx).value(), y = Buffer<f32>::from_host(stream.client(), hy).value();
  const auto ours = [&] {
    samples::saxpy(stream, for_num_elems(n), x, y, 0.5f).value();
    stream.sync().value();
  };
  ours();
  peers::saxpy(hx.data(), hy.data(), 0.5f, n);
  check_close("saxpy", y.read(stream).value(), hy, 1e-6f);
  Row r = start("saxpy");
  measure(r, kRuns, 1e3, 1, ours, [&] { peers::saxpy(hx.data(), hy.data(), 0.5f, n); });
  return r;
}

Row stencil_row(const Stream& stream) {
  constexpr std::size_t rows = 4096, columns = 4096;
  const std::vector<f32> in = ramp(rows * columns);
  std::vector<f32> out(rows * columns);
  auto src = Buffer<f32, 2>::from_host(stream.client(), in, {rows, columns}).value();
  auto dst = Buffer<f32, 2>::zeroed(stream.client(), rows, columns).value();
  const auto ours = [&] {
    samples::stencil5(stream, cover({columns, rows}, {64, 4}), src, dst, 0.1f).value();
    stream.sync().value();
  };
  ours();
  peers::stencil5(in.data(), out.data(), 0.1f, rows, columns);
  check_close("stencil", dst.read(stream).value(), out, 1e-5f);
  Row r = start("stencil");
  measure(r, kRuns, 1e3, 1, ours, [&] { peers::stencil5(in.data(), out.data(), 0.1f, rows, columns); });
  return r;
}

Row matmul_row(const Stream& stream) {
  constexpr std::size_t n = 512;
  const std::vector<f32> a = ramp(n * n), b = ramp(n * n);
  std::vector<f32> c(n * n);
  auto da = Buffer<f32, 2>::from_host(stream.client(), a, {n, n}).value(),
       db = Buffer<f32, 2>::from_host(stream.client(), b, {n, n}).value();
  auto dc = Buffer<f32, 2>::zeroed(stream.client(), n, n).value();
  const auto ours = [&] {
    samples::matmul(stream, cover({n, n}, {16, 16}), da, db, dc).value();
    stream.sync().value();
  };
  ours();
  peers::matmul(a.data(), b.data(), c.data(), n, n, n);
  check_close("matmul", dc.read(stream).value(), c, 1e-4f);
  Row r = start("matmul");
  measure(r, kRuns, 1e3, 1, ours, [&] { peers::matmul(a.data(), b.data(), c.data(), n, n, n); });
  return r;
}

Row reduce_row(const Stream& stream) {
  constexpr std::size_t n = std::size_t{1} << 24, blocks = 256;
  const std::vector<f32> x = ramp(n);
  auto dx = Buffer<f32>::from_host(stream.client(), x).value();
  auto parts = Buffer<f32>::zeroed(stream.client(), blocks).value();
  float total = 0;
  const auto ours = [&] {
    samples::block_sum(stream, {{blocks}, {samples::reduce_threads}}, dx, parts).value();
    total = 0;
    for (const f32 part : parts.read(stream).value()) total += part;
  };
  ours();
  double exact = 0;
  for (const f32 v : x) exact += v;
  if (std::abs(total - exact) > 1e-4 * exact) differ("reduce");
  volatile float sink = 0;
  Row r = start("reduce");
  measure(r, kRuns, 1e3, 1, ours, [&] { sink = peers::reduce(x.data(), n); });
  return r;
}

Row histogram_row(const Stream& stream) {
  constexpr std::size_t n = std::size_t{1} << 24, bins = samples::histogram_bins;
  std::vector<u32> x(n);
  u32 state = 1;
  for (u32& v : x) v = state = state * 1664525u + 1013904223u, v = v >> 16 & 127;
  std::vector<u32> counts(bins);
  auto dx = Buffer<u32>::from_host(stream.client(), x).value();
  auto dcounts = Buffer<u32>::zeroed(stream.client(), bins).value();
  const auto ours = [&] {
    samples::histogram(stream, {{256}, {256}}, dx, dcounts).value();
    stream.sync().value();
  };
  ours();
  peers::histogram(x.data(), counts.data(), n, bins);
  if (dcounts.read(stream).value() != counts) differ("histogram");
  Row r = start("histogram");
  measure(r, kRuns, 1e3, 1, ours, [&] { peers::histogram(x.data(), counts.data(), n, bins); });
  return r;
}

}  // namespace

std::vector<Row> cpu() {
  const Client client = Client::open("cpu").value();
  const Stream stream = client.stream();
  return {saxpy_row(stream), stencil_row(stream), matmul_row(stream), reduce_row(stream), histogram_row(stream)};
}

}  // namespace kiln::bench
