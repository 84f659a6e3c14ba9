// The examples of docs/tuning.md.
#include <optional>

#include "docs/examples.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_tuning {

// example: family
struct AxpyCfg {
  u32 block = 256, per_thread = 1;
};
KILN_CONFIG(AxpyCfg, block, per_thread)

Space<AxpyCfg> axpy_space() {
  return space<AxpyCfg>()
      .axis("block", &AxpyCfg::block, {64, 128, 256, 512})
      .axis("per_thread", &AxpyCfg::per_thread, {1, 2, 4})
      .launch([](const AxpyCfg& c, const Extents& e) {
        const u64 items = u64{c.block} * c.per_thread;
        return LaunchConfig{{(e[0] + items - 1) / items}, {c.block}};
      });
}

KILN_KERNEL(axpy, (const AxpyCfg& cfg, In<f32> x, InOut<f32> y, Val<f32> a), axpy_space())
{
  block_size(cfg.block);
  require(x.size() >= y.size());
  auto first = block_id().x * (cfg.block * cfg.per_thread) + thread_id().x;
  for (u32 k = 0; k < cfg.per_thread; ++k) {  // of the host: unrolled; neighbours in memory belong to neighbours in the block
    auto i = first + k * cfg.block;
    If (i < y.size()) { y[i] = a * x[i] + y[i]; }
  }
}
// end

// example: best
AxpyCfg best(const Stream& s, const Buffer<f32>& x, Buffer<f32>& y) {
  const auto space = axpy_space();
  AxpyCfg found = space.defaults();
  std::optional<std::chrono::nanoseconds> least;
  for (const AxpyCfg& cfg : space.configs()) {
    const auto go = axpy.with(cfg);
    const auto run = [&] { return go(s, space.launch_for(cfg, {y.size()}), x, y, 2.0f); };
    if (!run().has_value()) continue;  // compiled here, so that the windows have none of it; a device may refuse a variant
    for (int i = 0; i < 5; ++i) {
      const auto time = profile(s, run);  // an error where the launch failed, or was too short to be timed
      if (time.has_value() && (!least || *time < *least)) {
        least = *time;
        found = cfg;
      }
    }
  }
  return found;
}
// end

}  // namespace docs_tuning

TEST_CASE("docs/tuning: a search over a small space") {
  using docs_tuning::AxpyCfg;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    const auto x = Buffer<f32>::from_host(c, std::vector<f32>(1000, 1)).value();
    auto y = Buffer<f32>::zeroed(c, 1000).value();
    const AxpyCfg found = docs_tuning::best(c.stream(), x, y);
    const auto all = docs_tuning::axpy_space().configs();
    CHECK(std::count_if(all.begin(), all.end(),
                        [&](const AxpyCfg& a) { return a.block == found.block && a.per_thread == found.per_thread; }) == 1);
    CHECK(y.read().value() == std::vector<f32>(1000, 2.0f * static_cast<f32>(all.size()) * 6));  // once, and in five windows
  }
}
