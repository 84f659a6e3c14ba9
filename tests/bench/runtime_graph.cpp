// What a replay of a graph costs the host, beside issuing its launches.
#include "benches.h"
#include "kernels.h"
#include "kiln/runtime/graph.h"
#include "measure.h"
#include "null_driver.h"
#include "runtime_rows.h"

namespace kiln::bench {
namespace {

constexpr int kLaunches = 1000;

// Both are drained outside of the clock; `wait`: inside of it.
Row replay(const Client& client, std::string name, std::string why, int runs, bool wait) {
  Row row;
  row.name = std::move(name);
  row.unit = "us";
  row.why = std::move(why);
  row.peer_name = "issuing the 1000 launches";
  const Stream stream = client.stream();
  Buffer<f32> x = Buffer<f32>::zeroed(client, 32).value(), y = Buffer<f32>::zeroed(client, 32).value();
  const auto issue = [&] {
    for (int i = 0; i < kLaunches; ++i) samples::saxpy(stream, {{1}, {32}}, x, y, 2.0f).value();
  };
  issue();
  stream.sync().value();
  const Graph graph = capture(stream, issue).value();
  const auto timed = [&](auto&& work) {
    const double t = seconds([&] {
      work();
      if (wait) stream.sync().value();
    });
    stream.sync().value();
    return t * 1e6;
  };
  std::vector<double> ours, theirs, ratios;
  for (int run = -2; run < runs; ++run) {
    const double a = timed([&] { graph.replay(stream).value(); }), b = timed(issue);
    if (run < 0) continue;
    ours.push_back(a);
    theirs.push_back(b);
    ratios.push_back(a / b);
  }
  row.ours = median(ours);
  row.peer = median(theirs);
  row.ratio = median(ratios);
  row.spread = spread(ratios);
  return row;
}

}  // namespace

std::vector<Row> runtime_graph() {
  std::vector<Row> rows;
  const Client cpu = Client::open("cpu").value();
  rows.push_back(replay(cpu, "replay of 1000 launches, cpu, the host's part", "the target is 1/3 at most", 30, false));
  rows.push_back(replay(cpu, "replay of 1000 launches, cpu, and waiting for it", "", 30, true));
  const NullDriver driver;
  if (!driver.why.empty()) {
    Row row;
    row.name = "replay of 1000 launches, cuda on a null driver";
    row.unit = "us";
    row.why = driver.why;
    rows.push_back(row);
    return rows;
  }
  rows.push_back(replay(driver.client(), "replay of 1000 launches, cuda on a null driver", "the target is 1/10 at most", 100, false));
  return rows;
}

}  // namespace kiln::bench
