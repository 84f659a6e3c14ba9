// The examples of docs/profiling.md.
#include "docs/examples.h"
#include "support/process.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_profiling {

KILN_KERNEL(scale, (InOut<f32> x, Val<f32> a))
{
  auto i = global_id().x;
  If (i < x.size()) { x[i] = a * x[i]; }
}

}  // namespace docs_profiling

TEST_CASE("docs/profiling: windows") {
  using docs_profiling::scale;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    auto x = Buffer<f32>::from_host(c, std::vector<f32>(1000, 1)).value();
    // example: windows
    const Stream s = c.stream();
    scale(s, automatic(1000), x, 2.0f);  // compiled now, so that the window has none of it
    const auto work = [&] { return scale(s, automatic(1000), x, 2.0f); };
    const std::chrono::nanoseconds time = profile(s, work).value();
    // Or by hand: windows nest, and each has a token of its own.
    const ProfileToken all = start_profile(s).value(), second = start_profile_at_launch(s).value();
    scale(s, automatic(1000), x, 2.0f);
    const Result<std::chrono::nanoseconds> one = end_profile(s, second);  // waits; NotMeasured where nothing was timed
    abandon_profile(s, all);
    // end
    CHECK(time.count() > 0);
    CHECK(one.value().count() > 0);
  }
}

TEST_CASE("docs/profiling: the timeline") {
  using docs_profiling::scale;
  const TempFolder folder;
  const std::string file = folder.file("trace.json");
  for (const Client& c : devices()) {
    auto x = Buffer<f32>::from_host(c, std::vector<f32>(1000, 1)).value();
    // example: timeline
    Timeline timeline = Timeline::start().value();
    scale(automatic(1000), x, 2.0f);
    const std::vector<f32> h = x.read().value();
    const Trace trace = timeline.finish().value();  // waits for what was recorded
    trace.save(file).value();                       // for ui.perfetto.dev or chrome://tracing
    // end
    CHECK(h[0] == 2);
    CHECK(trace.operations >= 2);
    CHECK(trace.dropped == 0);
    CHECK(read_file(file).find("scale") != std::string::npos);
  }
}
