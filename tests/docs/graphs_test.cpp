// The example of docs/graphs.md.
#include "docs/examples.h"
#include "kiln/runtime/graph.h"

using namespace kiln;
using namespace kiln::test;

namespace docs_graphs {

KILN_KERNEL(relaxed, (In<f32> x, Out<f32> y))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) { y[i] = (x[max(i, 1) - 1] + x[i]) / 2; }
}

}  // namespace docs_graphs

TEST_CASE("docs/graphs") {
  using docs_graphs::relaxed;
  for (const Client& c : devices()) {
    CAPTURE(c.properties().name);
    auto a = Buffer<f32>::zeroed(c, 100).value(), b = Buffer<f32>::zeroed(c, 100).value();
    const Stream s = c.stream();
    // example: capture
    GraphCapture capture = GraphCapture::prepare(s).value();
    capture.begin().value();
    relaxed(s, for_num_elems(100), a, b);  // recorded, not run
    relaxed(s, for_num_elems(100), b, a);
    Graph graph = capture.end().value();
    for (int i = 0; i < 10; ++i) graph.replay(s).value();  // 20 launches
    // end
    CHECK(a.read().value() == std::vector<f32>(100, 0));
    a.write(std::vector<f32>(100, 3)).value();
    graph.replay(s).value();
    CHECK(a.read().value() == std::vector<f32>(100, 3));
    CHECK(graph.operations() == 2);
  }
}
