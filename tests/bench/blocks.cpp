// Code for the CPU that is told its block at launch, beside code for the block.
#include <kiln/kiln.h>

#include <stdexcept>

#include "benches.h"
#include "kernels.h"
#include "measure.h"
#include "support/launch_blocks.h"

namespace kiln::bench {

// As the samples, but with no block declared: such kernels only have code for that.
KILN_KERNEL(any_block_sum, (In<f32> x, Out<f32> partial))
{
  require(partial.size() == grid_dim().x);
  Shared<f32> per_warp(warp::size);
  auto t = thread_id().x, warps = (block_dim().x + warp::size - 1) / warp::size;
  Var<f32> s = 0;
  for (auto i : range(global_id().x, x.size(), block_dim().x * grid_dim().x)) { s += x[i]; }
  auto of_warp = warp::sum(s);
  If (t % warp::size == 0) { per_warp[t / warp::size] = of_warp; }
  barrier();
  If (t < warp::size) {
    Var<f32> r = 0;
    If (t < warps) { r = per_warp[t]; }
    auto total = warp::sum(r);
    If (t == 0) { partial[block_id().x] = total; }
  }
}

constexpr u32 kTile = 16;
KILN_KERNEL(any_block_matmul, (In<f32, 2> a, In<f32, 2> b, Out<f32, 2> c))
{
  require(b.extent(0) == a.extent(1));
  require(c.extent(0) == a.extent(0));
  require(c.extent(1) == b.extent(1));
  Shared<f32, 2> as(kTile, kTile), bs(kTile, kTile + 1);
  auto t = thread_id(), block = block_id();
  auto row = block.y * kTile + t.y, col = block.x * kTile + t.x;
  auto m = a.extent(0), inner = a.extent(1), n = b.extent(1);
  Var<f32> acc = 0;
  for (auto k0 : range(0, inner, kTile)) {
    auto ka = k0 + t.x, kb = k0 + t.y;
    Var<f32> va, vb;
    If (row < m && ka < inner) { va = a[row, ka]; }
    If (kb < inner && col < n) { vb = b[kb, col]; }
    as[t.y, t.x] = va;
    bs[t.y, t.x] = vb;
    barrier();
    for (u32 k = 0; k < kTile; ++k) acc += as[t.y, k] * bs[k, t.x];
    barrier();
  }
  If (row < m && col < n) { c[row, col] = acc; }
}

namespace {

constexpr int kRuns = 20;

using test::LaunchBlocks;

// One row for each form. `make` gives, on a client, a function that launches and waits, and what it computes.
struct Work {
  std::function<void()> run;
  std::function<std::vector<f32>()> result;
};
void rows_of(std::vector<Row>& rows, const std::string& name, const std::vector<LaunchBlocks>& forms,
             const std::function<Work(const Stream&)>& make) {
  const Client exact_client = Client::open("cpu").value();
  const Work exact = make(exact_client.stream());
  exact.run();
  const std::vector<f32> wanted = exact.result();
  for (const LaunchBlocks form : forms) {
    const Work told = make(test::client_of(form).stream());
    told.run();
    if (told.result() != wanted) throw std::runtime_error("blocks: the results of " + name + " differ from those of an exact block");
    Row r;
    r.name = name + (form == LaunchBlocks::Rows ? ", any row" : ", any shape");
    r.unit = "ms";
    r.peer_name = "code for the block";
    measure(r, kRuns, 1e3, 1, told.run, exact.run);
    rows.push_back(r);
  }
}

std::vector<f32> ramp(std::size_t n) {
  std::vector<f32> values(n);
  for (std::size_t i = 0; i < n; ++i) values[i] = static_cast<f32>(i % 1000) * 0.001f;
  return values;
}

}  // namespace

std::vector<Row> blocks() {
  std::vector<Row> rows;
  const std::vector<LaunchBlocks> both{LaunchBlocks::Rows, LaunchBlocks::Any};
  for (const std::size_t n : {std::size_t{1} << 14, std::size_t{1} << 24}) {  // in the cache, and not
    rows_of(rows, "saxpy of 2^" + std::to_string(n == 1 << 14 ? 14 : 24), both, [&](const Stream& stream) {
      auto x = Buffer<f32>::from_host(stream.client(), ramp(n)).value(), y = Buffer<f32>::from_host(stream.client(), ramp(n)).value();
      return Work{[=]() mutable {
                    for (std::size_t i = 0; i < (std::size_t{1} << 24) / n; i += 4)
                      samples::saxpy(stream, for_num_elems(n), x, y, 0.5f).value();
                    stream.sync().value();
                  },
                  [=] { return y.read(stream).value(); }};
    });
  }
  rows_of(rows, "reduction of 2^24", both, [&](const Stream& stream) {
    auto x = Buffer<f32>::from_host(stream.client(), ramp(std::size_t{1} << 24)).value();
    auto parts = Buffer<f32>::zeroed(stream.client(), 256).value();
    return Work{[=]() mutable {
                  any_block_sum(stream, {{256}, {256}}, x, parts).value();
                  stream.sync().value();
                },
                [=] { return parts.read(stream).value(); }};
  });
  rows_of(rows, "matmul of 512", {LaunchBlocks::Any}, [&](const Stream& stream) {
    constexpr std::size_t n = 512;
    auto a = Buffer<f32, 2>::from_host(stream.client(), ramp(n * n), {n, n}).value(),
         b = Buffer<f32, 2>::from_host(stream.client(), ramp(n * n), {n, n}).value();
    auto c = Buffer<f32, 2>::zeroed(stream.client(), n, n).value();
    return Work{[=]() mutable {
                  any_block_matmul(stream, cover({n, n}, {kTile, kTile}), a, b, c).value();
                  stream.sync().value();
                },
                [=] { return c.read(stream).value(); }};
  });
  return rows;
}

}  // namespace kiln::bench
