// The examples of docs/host.md and docs/failures.md.
#include <cstdlib>

#include "cpu/cpu_device.h"
#include "docs/examples.h"
#include "src/server.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_host {

KILN_KERNEL(saxpy, (In<f32> x, InOut<f32> y, Val<f32> a))
{
  require(x.size() >= y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = a * x[i] + y[i]; }
}

KILN_KERNEL(decide, (Out<u32> grid, Val<u32> n))
{
  If (global_id().x == 0) {
    grid[0] = (n + 31) / 32;
    grid[1] = 1;
    grid[2] = 1;
  }
}

KILN_KERNEL(blur, (In<f32, 2> x, Out<f32, 2> y))
{
  block_size(16, 16);
  require(x.extent(0) >= y.extent(0) && x.extent(1) >= y.extent(1));
  auto [c, r, z] = global_id();
  If (r < y.extent(0) && c < y.extent(1)) { y[r, c] = (x[r, max(c, 1) - 1] + x[r, c]) / 2; }
}

struct TileCfg {
  u32 tile = 16;
};
KILN_CONFIG(TileCfg, tile)

KILN_KERNEL(reversed, (const TileCfg& cfg, In<f32> x, Out<f32> y))
{
  DynamicShared<f32> s;
  auto t = thread_id().x;
  If (t < cfg.tile && t < x.size()) { s[t] = x[t]; }
  barrier();
  If (t < y.size() && t < cfg.tile) { y[t] = s[cfg.tile - 1 - t]; }
}

KILN_KERNEL(counted, (InOut<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { log("y[{}] was {}", i, y[i]); }
}

}  // namespace docs_host

TEST_CASE("docs/host: devices and streams") {
  // example: devices
  Client c = Client::default_client();                    // KILN_DEVICE, else the first usable GPU, else the CPU; throws kiln::Exception
  Client cpu = Client::open("cpu").value();               // by name
  const DeviceProperties& properties = cpu.properties();  // name, kind, arch and limits
  Stream s = cpu.stream();                                // a new ordered queue; cpu.default_stream() is the calling thread's own
  s.sync();                                               // waits; reports device faults, never a launch's failure
  // end
  CHECK(properties.kind == "cpu");
  CHECK(!c.properties().name.empty());
}

TEST_CASE("docs/host: buffers and launches") {
  using docs_host::blur, docs_host::reversed, docs_host::saxpy;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    // example: buffers
    auto a = Buffer<f32>::from_host(c, std::vector<f32>(100, 1)).value();               // copied from the host
    auto m = Buffer<f32, 2>::from_host(c, std::vector<f32>(6 * 4, 2), {6, 4}).value();  // 6 rows of 4, row-major
    auto z = Buffer<u32>::zeroed(c, 256).value();
    auto o = Buffer<f32, 2>::uninitialised(c, 6, 4).value();  // for an Out
    std::vector<f32> h = a.read().value();                    // waits; refuses memory that carries a failure
    a.write(h);                                               // as many elements as the buffer has
    Buffer<f32> part = a.slice(10, 20);                       // 20 elements from number 10 on: the same memory
    Buffer<f32, 2> grid = a.view(10, 10);                     // other extents of the same product: the same memory
    const u64 elements = grid.size(), rows = m.extent(0);
    // end
    CHECK(elements == 100);
    CHECK(rows == 6);
    CHECK(z.read().value()[255] == 0);
    auto b = Buffer<f32>::from_host(c, std::vector<f32>(100, 2)).value();
    auto out = Buffer<f32>::uninitialised(c, 8).value();
    // example: launching
    const Stream s = c.stream();
    saxpy(for_num_elems(100), a, b, 2.0f);     // the default stream of the buffers' client
    saxpy(s, for_num_elems(100), a, b, 2.0f);  // a stream
    blur(s, {{1, 1}, {16, 16}}, m, o);         // grid, then block
    blur(s, cover({4, 6}, {16, 16}), m, o);    // enough blocks of 16 x 16 for 4 columns x 6 rows
    LaunchConfig config{{1}, {32}};
    config.shared_bytes = 8 * 4;                           // for a DynamicShared
    reversed.with({.tile = 8})(s, config, part, out);      // one variant of a family
    saxpy.unchecked()(s, for_num_elems(100), a, b, 2.0f);  // the author's word that nothing is out of range
    // end
    CHECK(b.read().value() == std::vector<f32>(100, 8));
    CHECK(o.read().value() == std::vector<f32>(24, 2));
    CHECK(out.read().value() == std::vector<f32>(8, 1));
    // example: results
    const Result<void> launched = saxpy(for_num_elems(100), a.slice(0, 50), b, 2.0f);
    if (!launched.has_value()) {
      const Error& why = launched.error();  // code(), rule(), kernel(), causes(); text() is for people
      if (why.rule() == "SizeRequirementViolated") saxpy(for_num_elems(100), a, b, 2.0f).value();  // value() throws kiln::Exception
    }
    // end
    CHECK(b.read().value() == std::vector<f32>(100, 10));
  }
}

TEST_CASE("docs/host: grids and blocks") {
  using docs_host::decide, docs_host::saxpy;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    const Stream s = c.stream();
    auto a = Buffer<f32>::from_host(c, std::vector<f32>(100, 1)).value(), b = Buffer<f32>::from_host(c, std::vector<f32>(100, 0)).value();
    auto count = Buffer<u32>::zeroed(c, 3).value();
    // example: grids
    saxpy(automatic(100), a, b, 2.0f);  // at least 100 threads; the block that suits kernel and device
    // A kernel decides how many blocks the next one has.
    decide(for_num_elems(1), count, 100u);                              // writes x, y and z
    saxpy(dynamic_grid(count, {32}), a, b, 2.0f);                       // reads them when its turn comes
    const Spread wide = spread({65535, 65535, 65535}, 100000).value();  // (50000, 2, 1); wide.exact: no block more than asked for
    // Checked once, launched often.
    auto go = saxpy.prepare(s, automatic(100), a, b, 2.0f).value();
    for (int i = 0; i < 3; ++i) go();
    go.rebind(a, b, 0.5f).value();  // other arguments, checked again
    go();
    // end
    CHECK(wide.grid == Dim3(50000, 2));
    CHECK(b.read().value() == std::vector<f32>(100, 10.5f));
  }
}

TEST_CASE("docs/host: logs") {
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    std::string lines;
    // example: logs
    c.on_log([&](const LogLine& l) { lines += std::string(l.kernel) + " " + std::string(l.text) + "\n"; });  // {}: stderr again
    c.log_bytes(16 << 20);  // of each launch from now on; at first KILN_LOG_BYTES, else 1 MiB
    // end
    auto y = Buffer<u32>::from_host(c, {7}).value();
    docs_host::counted(for_num_elems(1), y);
    CHECK(y.read().value()[0] == 7);
    CHECK(lines == "docs_host::counted y[0] was 7\n");
    c.on_log({});
    c.log_bytes(1 << 20);
  }
}

TEST_CASE("docs/host: memory") {
  const Client c(rt::make_server(rt::make_cpu_device().value()));  // a device of its own, whose layout nobody else has
  const u64 n = 100, bytes = 400;
  const Stream s = c.stream();
  auto weights = Buffer<f32>::zeroed(c, 1).value();
  // example: memory
  const MemoryReport report = memory_report(c).value();  // pools with peaks; memory_report(c, s): of what was allocated for a stream
  const std::string table = report.text();
  const u64 given_back = memory_cleanup(c).value();                 // unused memory goes back to the device
  install_memory_pools(c, MemoryPools::exclusive_pages()).value();  // or ::sub_slices(c.properties()), or pools of your own
  {
    PersistentMemory window(c);  // what is allocated here is kept apart from memory that comes and goes
    weights = Buffer<f32>::zeroed(c, n).value();
  }
  const Memory m = allocate(s, bytes).value();  // on the account of a stream
  // end
  static_cast<void>(given_back);
  CHECK(!table.empty());
  CHECK(m != nullptr);
  CHECK(weights.read().value() == std::vector<f32>(100, 0));
  const MemoryReport then = memory_report(c).value();
  CHECK(then.pools.back().kind == PoolKind::Persistent);
  CHECK(then.pools.back().usage.allocations == 1);
  CHECK(memory_report(c, s).value().total.bytes_in_use == 400);
}

TEST_CASE("docs/host: the default client's buffers") {
  // example: default buffers
  Buffer<f32> a(std::vector<f32>(100, 1));  // on the default client, copied from the host; throws kiln::Exception
  Buffer<f32, 2> m(std::vector<f32>(6 * 4), {6, 4});
  // end
  CHECK(a.read().value() == std::vector<f32>(100, 1));
  CHECK(m.extent(1) == 4);
  CHECK(a.client() == Client::default_client());
}
