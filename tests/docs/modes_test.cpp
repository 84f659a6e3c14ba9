// The examples of docs/modes.md.
#include "kiln/runtime/modes.h"

#include <doctest/doctest.h>
#include <kiln/kiln.h>

#include "support/clients.h"

namespace {
using namespace kiln;

KILN_KERNEL(tripled_plus_one, (Out<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = i * 3 + 1; }
}

// example: pass
ExecutionStatistics prepare(const Client& c, const std::function<void()>& workload) {
  const StatisticsCollector collector;
  {
    const auto pass = ProcessModeOverride::open(ProcessMode::CompileOnly, collector).value();
    workload();                 // its launches only queue their kernels
    compile_queued(c).value();  // all at a time; the end of the override would do it, too
  }
  return collector.reader().read();  // .compilation.compiled, .failed ...
}
// end

}  // namespace

TEST_CASE("docs/modes.md: a pass that only compiles") {
  for (const Client& c : test::clients()) {
    auto y = Buffer<u32>::zeroed(c, 4).value();
    const auto workload = [&] { tripled_plus_one(for_num_elems(4), y); };
    const ExecutionStatistics statistics = prepare(c, workload);
    CHECK(statistics.compilation.registered == 1);
    CHECK(statistics.compilation.settled() == 1);
    CHECK(statistics.compilation.failed == 0);
    CHECK(y.read().value() == std::vector<u32>(4, 0));
    workload();
    CHECK(y.read().value() == std::vector<u32>{1, 4, 7, 10});
  }
}
