#include <cstdlib>

#include "allocations.h"
#include "benches.h"
#include "kernels.h"
#include "measure.h"
#include "runtime_rows.h"

namespace kiln::bench {
namespace {

constexpr const char* kNoPeer = "a launch of CUDA needs a GPU";

}  // namespace

std::vector<Row> launch() {
  const char* named = std::getenv("KILN_DEVICE");
  const Client client = Client::open(named != nullptr && *named != 0 ? named : "cpu").value();
  const Stream stream = client.stream();
  const LaunchConfig one_block{{1}, {32}};
  const auto enqueue = [&] { empty(stream, one_block).value(); };

  Row host = row("enqueue", "us", kNoPeer);
  enqueue();
  stream.sync().value();
  // A hundred at a time, drained in between and outside of the clock, so that it is not a queue's limit that is measured.
  std::vector<double> times;
  for (int run = 0; run < 200; ++run) {
    times.push_back(seconds([&] {
                      for (int i = 0; i < 100; ++i) enqueue();
                    }) /
                    100 * 1e6);
    stream.sync().value();
  }
  host.ours = median(times);
  host.spread = spread(times);

  Row trip = row("enqueue and wait", "us", kNoPeer);
  measure(trip, 50, 1e6, 100,
          [&] {
            enqueue();
            stream.sync().value();
          },
          {});

  Row allocated = row("allocations a launch", "count", "the target is 0");
  constexpr int kLaunches = 1000;
  std::uint64_t before = 0;
  for (int run = 0; run < 2; ++run) {  // the first time the queue grows to that depth
    before = allocations();
    for (int i = 0; i < kLaunches; ++i) enqueue();
    stream.sync().value();
  }
  allocated.ours = static_cast<double>(allocations() - before) / kLaunches;
  std::vector<Row> rows{host, trip, allocated};
  for (Row& r : launch_over_null_driver()) rows.push_back(std::move(r));
  return rows;
}

}  // namespace kiln::bench
