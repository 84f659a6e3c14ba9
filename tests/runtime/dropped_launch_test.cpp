// Launches that a mode override drops, in whatever form they come: from other threads, prepared, with blocks that the runtime chooses or a
// grid that the device holds, and on a stream that is recorded. On each device.
#include <doctest/doctest.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kiln/kiln.h"
#include "kiln/runtime/modes.h"
#include "kiln/runtime/prepared.h"
#include "runtime/graph_devices.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// fill(y, 9) as a request.
struct Fill {
  LaunchArg args[2];
  Binding grid;
  LaunchRequest request;
  explicit Fill(const Buffer<u32>& y, const Variant& variant = kernels().fill) : args{y.arg(), scalar(9)} {
    request.variant = &variant;
    request.args = args;
    request.config.grid = Dim3(4);
  }
  Fill(const Fill&) = delete;
};

}  // namespace

TEST_CASE("a dropped launch touches nothing and claims nothing, whoever issues it and whatever its grid is") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  constexpr std::size_t n = 1024;  // a thread each of the largest block
  auto x = made(client, of(4, 1)), y = made(client, of(n, 2)), claimed = made(client, of(4, 3)), large = made(client, {1, 1u << 20, 1});
  REQUIRE_FALSE(run(stream, kernels().broken, x.arg(), claimed.arg()).has_value());
  Fill plain(y), chosen(y), counted(y), of_claimed(y), beyond(y);
  chosen.request.config = automatic(4);
  const auto grid_of = [](Fill& fill, const Buffer<u32>& grid) {
    fill.grid = grid.slice(0, 3).binding();
    fill.request.dynamic_grid = &fill.grid;
  };
  grid_of(counted, x);
  grid_of(of_claimed, claimed);  // it is not asked whether its grid is there
  grid_of(beyond, large);        // nor read
  const auto prepared = PreparedLaunch::prepare(stream, plain.request).value();
  const LaunchArg copied[] = {claimed.arg(), y.arg()};
  LaunchRequest of_claimed_input;
  of_claimed_input.variant = &kernels().copy;
  of_claimed_input.args = copied;
  const auto skipped = PreparedLaunch::prepare(stream, of_claimed_input).value();
  struct Row {
    const char* what;
    std::function<Result<void>()> launch;
    bool runs;  // where launches run
  };
  const Row rows[] = {
      {"plain", [&] { return launch(stream, plain.request); }, true},
      {"by another thread",
       [&] {
         Result<void> result;
         std::thread([&] { result = launch(stream, plain.request); }).join();
         return result;
       },
       true},
      {"with a block that is chosen", [&] { return launch(stream, chosen.request); }, true},
      {"with a grid of the device", [&] { return launch(stream, counted.request); }, true},
      {"with a grid that carries a failure", [&] { return launch(stream, of_claimed.request); }, false},
      {"with a grid beyond the limits",
       [&] {
         const auto result = launch(stream, beyond.request);
         REQUIRE(stream.sync().has_value());
         return result.has_value() ? client.check(y) : result;
       },
       false},
      {"prepared", [&] { return prepared(); }, true},
      {"prepared, of a claimed input", [&] { return skipped(); }, false},
  };
  for (const ProcessMode mode : {ProcessMode::CompileOnly, ProcessMode::CompileAndAutotune}) {
    for (const Row& row : rows) {
      CAPTURE(name(mode));
      CAPTURE(std::string(row.what));
      REQUIRE(y.write(stream, of(n, 2)).has_value());
      {
        const auto pass = ProcessModeOverride::open(mode).value();
        CHECK(row.launch().has_value());
        CHECK(y.read(stream).value() == of(n, 2));
        const StreamModeOverride runs(stream, StreamMode::Execute);  // of the stream it is on, whichever thread issues it
        CHECK(row.launch().has_value() == row.runs);
        CHECK(y.read(stream).has_value() == row.runs);
      }
      REQUIRE(y.write(stream, of(n, 2)).has_value());
      CHECK(row.launch().has_value() == row.runs);
      CHECK(y.read(stream).has_value() == row.runs);
      if (row.runs) CHECK(y.read(stream).value()[0] == 9);
    }
  }
}

TEST_CASE("a graph that lacks a launch that was dropped is good for a pass that drops its replays, and is refused where they run") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 2)), b = made(client, of(4, 3)), c = made(client, of(4, 4));
  Fill fill(b);
  const auto prepared = PreparedLaunch::prepare(stream, fill.request).value();
  struct Row {
    const char* what;
    std::function<Result<void>()> drop;
    const char* kernel;
    bool lacks;
  };
  LaunchRequest nothing = fill.request;
  nothing.config.grid = Dim3(4, 0);
  const Row rows[] = {
      {"a launch", [&] { return launch(stream, fill.request); }, "fill", true},
      {"a launch that is prepared", [&] { return prepared(); }, "fill", true},
      {"a launch over nothing", [&] { return launch(stream, nothing); }, "", false},
      {"a copy", [&] { return rt::copy(stream, b.binding(), x.binding()); }, "", false},  // is none
  };
  for (const Row& row : rows) {
    CAPTURE(std::string(row.what));
    REQUIRE(a.write(of(4, 2)).has_value());
    REQUIRE(b.write(of(4, 3)).has_value());
    auto open = GraphCapture::prepare(stream);
    REQUIRE(open->begin().has_value());
    REQUIRE(run(stream, kernels().copy, x.arg(), a.arg()).has_value());  // before the override is opened
    Result<Graph> graph = Graph();
    {
      const auto pass = ProcessModeOverride::open(ProcessMode::CompileOnly).value();
      REQUIRE(row.drop().has_value());
      graph = open->end();
      REQUIRE_MESSAGE(graph.has_value(), graph.error().text());
      CHECK(graph->replay(stream).has_value());
    }
    CHECK(a.read().value() == of(4, 2));
    CHECK(b.read().value() == of(4, 3));
    auto around = capture(stream, [&] {
      REQUIRE(graph->replay(stream).has_value());
      REQUIRE(run(stream, kernels().fill, c.arg(), scalar(7)).has_value());
    });
    REQUIRE(around.has_value());
    for (const Graph& each : {*graph, *around}) {
      REQUIRE(a.write(of(4, 2)).has_value());
      REQUIRE(b.write(of(4, 3)).has_value());
      REQUIRE(c.write(of(4, 4)).has_value());
      const auto replayed = each.replay(stream);
      REQUIRE(replayed.has_value() == !row.lacks);
      if (row.lacks) {
        CHECK(rule_of(replayed) == "GraphLacksLaunch");
        CHECK(replayed.error().kernel() == row.kernel);
        CHECK(has(refused(a), "dropped a launch"));
        CHECK(has(refused(b), "dropped a launch"));  // of the launch that is not there
      } else {
        CHECK(a.read().value() == of(4, 1));
      }
      CHECK(c.read().has_value() == (!row.lacks || each == *graph));
      CHECK(x.read().value() == of(4, 1));
    }
    CHECK(graph->destroy().has_value());
    CHECK(around->destroy().has_value());
    REQUIRE(a.write(of(4, 2)).has_value());
    REQUIRE(b.write(of(4, 3)).has_value());
    REQUIRE(c.write(of(4, 4)).has_value());
    CHECK(local(client).failures().empty());
  }
}
