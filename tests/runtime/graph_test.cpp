// Graphs on each device: what a capture takes and refuses, what a replay does, and what its failures concern.
#include "kiln/runtime/graph.h"

#include <doctest/doctest.h>

#include <atomic>
#include <functional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kiln/kiln.h"
#include "kiln/runtime/memory.h"
#include "kiln/runtime/modes.h"
#include "runtime/graph_devices.h"
#include "support/allocations.h"

using namespace kiln;
using namespace kiln::test;

namespace graph_test {

KILN_KERNEL(speaks, (InOut<u32> y))
{
  auto i = global_id().x;
  If (i < y.size()) {
    y[i] += 1;
    log("y[{}] = {}", i, y[i]);
  }
}

KILN_KERNEL(traps, (InOut<u32> y))
{
  auto i = global_id().x;
  If (y[i] == 13) { trap("thirteen"); }
  y[i] += 1;
}

}  // namespace graph_test

namespace {

// One graph of a, of what is issued between.
template <class Body>
Graph captured(const Stream& stream, Body&& body) {
  auto graph = capture(stream, body);
  REQUIRE_MESSAGE(graph.has_value(), graph.error().text());
  return *graph;
}

}  // namespace

TEST_CASE("a replay on a stream that discards its launches leaves memory as it is, and runs where they run again") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto a = made(client, of(4, 1));
  const Graph graph = captured(stream, [&] { REQUIRE(run(stream, kernels().add, a.arg(), scalar(10)).has_value()); });
  {
    const StreamModeOverride discards(stream, StreamMode::Discard);
    CHECK(graph.replay(stream).has_value());
    CHECK(a.read(client.default_stream()).value() == of(4, 1));
  }
  CHECK(graph.replay(stream).has_value());
  CHECK(a.read(client.default_stream()).value() == of(4, 11));
}

TEST_CASE("what is recorded does not run, and runs as one at each replay, with what is in the buffers then") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, {1, 2, 3, 4}), a = made(client, of(4, 0)), b = made(client, of(4, 0));
  const Graph graph = captured(stream, [&] {
    REQUIRE(run(stream, kernels().copy, x.arg(), a.arg()).has_value());
    REQUIRE(run(stream, kernels().add, a.arg(), scalar(10)).has_value());
    REQUIRE(run(stream, kernels().copy, a.arg(), b.arg()).has_value());
  });
  CHECK(graph.operations() == 3);
  CHECK(graph.id() != 0);
  CHECK(a.read().value() == of(4, 0));
  for (u32 round = 0; round < 20; ++round) {
    REQUIRE(x.write({round, 1, 2, 3}).has_value());
    REQUIRE(graph.replay(stream).has_value());
    if (round % 3 == 0) CHECK(b.read(client.stream()).value() == std::vector<u32>{round + 10, 11, 12, 13});
  }
  CHECK(b.read().value() == std::vector<u32>{29, 11, 12, 13});
  CHECK(local(client).failures().empty());
}

TEST_CASE("a graph is replayed a thousand times, on any stream, with new inputs between, and allocates nothing once it is warm") {
  const Client client = graph_client();
  const Stream streams[] = {client.stream(), client.stream(), client.stream()};
  auto x = made(client, {0}), sum = made(client, {0});
  const Graph graph = captured(streams[0], [&] {
    run(streams[0], kernels().add, sum.arg(), scalar(1)).value();
    run(streams[0], kernels().copy, sum.arg(), x.arg()).value();
  });
  std::uint64_t allocated = 0;
  for (u32 i = 0; i < 1000; ++i) {
    if (i == 500) allocated = allocations();
    REQUIRE(graph.replay(streams[i % 3]).has_value());
    if (i >= 500) continue;
    if (i % 100 == 50) REQUIRE(sum.write({i}).has_value());
    if (i % 50 == 49) CHECK(x.read().value() == sum.read().value());
  }
  allocated = allocations() - allocated;
  if (allocations_counted() && client.properties().kind == "cpu") CHECK(allocated == 0);  // the simulated driver allocates
  CHECK(x.read().value() == std::vector<u32>{450 + 549});
  CHECK(local(client).captures().instances().size() <= rt::Captures::kInstances);
}

TEST_CASE("copies, fills and writes from the host are part of a graph, with the bytes that were given then") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto a = made(client, of(8, 1)), b = made(client, of(8, 2)), c = made(client, of(8, 3));
  Graph graph;
  {
    std::vector<u32> host{5, 6, 7, 8};
    graph = captured(stream, [&] {
      REQUIRE(a.slice(0, 4).write(stream, host).has_value());
      host.assign(4, 99);
      REQUIRE(rt::fill_zero(stream, a.slice(4, 4).binding()).has_value());
      REQUIRE(rt::copy(stream, b.slice(2, 4).binding(), a.slice(3, 4).binding()).has_value());
      REQUIRE(run(stream, kernels().copy, b.arg(), c.arg()).has_value());
    });
  }
  CHECK(graph.operations() == 4);
  CHECK(a.read().value() == of(8, 1));
  for (int i = 0; i < 2; ++i) {
    REQUIRE(a.write(of(8, 1)).has_value());
    REQUIRE(b.write(of(8, 2)).has_value());
    REQUIRE(graph.replay(client.stream()).has_value());
    CHECK(a.read().value() == std::vector<u32>{5, 6, 7, 8, 0, 0, 0, 0});
    CHECK(b.read().value() == std::vector<u32>{2, 2, 8, 0, 0, 0, 2, 2});
    CHECK(c.read().value() == std::vector<u32>{2, 2, 8, 0, 0, 0, 2, 2});
  }
}

TEST_CASE("a graph keeps what it uses: buffers that were dropped since, or while it was recorded, are there at each replay") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto out = made(client, of(4, 0));
  Graph graph;
  {
    auto x = made(client, {1, 2, 3, 4});
    graph = captured(stream, [&] {
      auto between = Buffer<u32>::uninitialised(client, 4).value();
      REQUIRE(run(stream, kernels().copy, x.arg(), between.arg()).has_value());
      REQUIRE(run(stream, kernels().add, between.arg(), scalar(1)).has_value());
      REQUIRE(run(stream, kernels().copy, between.arg(), out.arg()).has_value());
    });
  }
  auto others = made(client, of(4, 77));  // takes the place of what was freed, if anything was
  for (int i = 0; i < 3; ++i) {
    REQUIRE(out.write(of(4, 0)).has_value());
    REQUIRE(graph.replay(stream).has_value());
    CHECK(out.read().value() == std::vector<u32>{2, 3, 4, 5});
  }
  CHECK(others.read().value() == of(4, 77));
}

TEST_CASE("a graph that is dropped while it runs runs to its end") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto a = made(client, of(64, 0));
  {
    const Graph graph = captured(stream, [&] {
      for (int i = 0; i < 50; ++i) run(stream, kernels().add, a.arg(), scalar(1)).value();
    });
    for (int i = 0; i < 3; ++i) REQUIRE(graph.replay(stream).has_value());
  }
  CHECK(a.read().value() == of(64, 150));
  REQUIRE(client.sync().has_value());
  CHECK(local(client).captures().instances().size() == 0);
}

TEST_CASE("a graph is replayed by several threads on several streams at a time") {
  const Client client = graph_client();
  auto a = made(client, of(4, 0)), b = made(client, of(4, 0));
  const Stream stream = client.stream();
  const Graph graph = captured(stream, [&] {
    run(stream, kernels().add, a.arg(), scalar(1)).value();
    run(stream, kernels().add, b.arg(), scalar(2)).value();
  });
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      const Stream own = client.stream();
      for (int i = 0; i < 50; ++i) failed += !graph.replay(own).has_value();
    });
  for (std::thread& t : threads) t.join();
  CHECK(failed == 0);
  CHECK(a.read().value() == of(4, 200));
  CHECK(b.read().value() == of(4, 400));
}

TEST_CASE("other streams go on while one is recorded, the one that is folded on its queue too") {
  const Client client = graph_client();
  const Stream stream = client.stream(), other = client.stream(), folded(client, stream.id() + rt::kNormalQueues);
  auto a = made(client, of(4, 0)), b = made(client, of(4, 0)), c = made(client, of(4, 0));
  const Graph graph = captured(stream, [&] {
    REQUIRE(run(stream, kernels().fill, a.arg(), scalar(1)).has_value());
    REQUIRE(run(other, kernels().fill, b.arg(), scalar(2)).has_value());
    REQUIRE(run(folded, kernels().fill, c.arg(), scalar(3)).has_value());
    CHECK(b.read(other).value() == of(4, 2));
    CHECK(c.read(folded).value() == of(4, 3));
    CHECK(folded.sync().has_value());
    CHECK_FALSE(run(folded, kernels().broken, a.arg(), b.arg()).has_value());  // concerns b, and not the capture
    CHECK(client.sync().has_value());
    CHECK(client.sync(a, c).has_value());
    CHECK(a.read(other).value() == of(4, 0));
  });
  CHECK(graph.operations() == 1);
  refused(b);
  REQUIRE(graph.replay(folded).has_value());
  CHECK(a.read().value() == of(4, 1));
}

TEST_CASE("what would wait for what is only recorded is refused, and the capture goes on") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto a = made(client, of(4, 0));
  const Graph graph = captured(stream, [&] {
    REQUIRE(run(stream, kernels().fill, a.arg(), scalar(5)).has_value());
    const auto read = a.read(stream);
    CHECK(rule_of(read) == "NotInCapture");
    CHECK(has(read.error().text(), "a read on stream " + std::to_string(stream.id())));
    CHECK(rule_of(stream.sync()) == "NotInCapture");
  });
  REQUIRE(graph.replay(stream).has_value());
  CHECK(a.read(stream).value() == of(4, 5));
  CHECK(stream.sync().has_value());
}

TEST_CASE("a replay on a stream that is recorded becomes a part of what is recorded") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto a = made(client, of(2, 0)), b = made(client, of(2, 0));
  Graph inner = captured(stream, [&] {
    run(stream, kernels().add, a.arg(), scalar(1)).value();
    a.slice(1, 1).write(stream, {40}).value();
  });
  const Graph outer = captured(stream, [&] {
    REQUIRE(inner.replay(stream).has_value());
    REQUIRE(inner.replay(stream).has_value());
    REQUIRE(run(stream, kernels().copy, a.arg(), b.arg()).has_value());
  });
  CHECK(outer.operations() == 5);
  REQUIRE(inner.destroy().has_value());
  inner = {};
  CHECK(a.read().value() == of(2, 0));
  REQUIRE(outer.replay(stream).has_value());
  REQUIRE(outer.replay(stream).has_value());
  CHECK(b.read().value() == std::vector<u32>{4, 40});
}

TEST_CASE("an empty capture is a graph that does nothing") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto a = made(client, of(2, 7));
  const Graph graph = captured(stream, [&] {
    REQUIRE(run_blocks(stream, kernels().fill, 0, a.arg(), scalar(1)).has_value());  // nothing, in a capture too
    REQUIRE(rt::fill_zero(stream, {}).has_value());
  });
  CHECK(graph.operations() == 0);
  REQUIRE(graph.replay(stream).has_value());
  CHECK(a.read().value() == of(2, 7));
  CHECK(graph.destroy().has_value());
}

// --- what dooms a capture ---------------------------------------------------------------------------------------------------------

TEST_CASE("an operation that fails, is skipped or is refused dooms the capture: no graph, and what it was to write is claimed") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 2)), b = made(client, of(4, 3)), claimed = made(client, of(4, 4));
  struct Doom {
    const char* says;
    std::string rule;  // of the operation's error, or its code's name
    bool claims_b;
    std::function<Result<void>()> operation;
  };
  const auto launch_with = [&](LaunchConfig config, const Binding* grid) {
    const LaunchArg args[] = {x.arg(), b.arg()};
    LaunchRequest request;
    request.variant = &kernels().copy;
    request.config = config;
    request.args = args;
    request.dynamic_grid = grid;
    return launch(stream, request);
  };
  const Binding grid = x.slice(0, 3).binding();
  const Doom table[] = {
      {"recording went wrong", "CompileValidation", true, [&] { return run(stream, kernels().broken, x.arg(), b.arg()); }},
      {"recording went wrong", "Skipped", true, [&] { return run(stream, kernels().copy, claimed.arg(), b.arg()); }},
      {"recording went wrong", "Skipped", true, [&] { return rt::copy(stream, b.binding(), claimed.binding()); }},
      {"the block has no threads", "ZeroDimension", true, [&] { return launch_with({{4}, {0}}, nullptr); }},
      {"overlap", "CopyOverlap", false, [&] { return rt::copy(stream, b.slice(0, 2).binding(), b.slice(1, 2).binding()); }},
      {"a launch whose grid is read on the device on stream", "NotInCapture", true, [&] { return launch_with({{4}, {1}}, &grid); }},
      {"there is no graph", "NoGraph", false, [&] { return Graph().replay(stream); }},
  };
  for (const Doom& doom : table) {
    CAPTURE(doom.says);
    CAPTURE(doom.rule);
    REQUIRE(b.write(of(4, 3)).has_value());
    REQUIRE_FALSE(run(client.stream(), kernels().broken, x.arg(), claimed.arg()).has_value());
    auto open = GraphCapture::prepare(stream);
    REQUIRE(open->begin().has_value());
    REQUIRE(run(stream, kernels().copy, x.arg(), a.arg()).has_value());
    const auto failed = doom.operation();
    REQUIRE_FALSE(failed.has_value());
    CHECK((failed.error().rule().empty() ? name(failed.error().code()) : failed.error().rule()) == doom.rule);
    CHECK(run(stream, kernels().add, a.arg(), scalar(1)).has_value());  // recorded all the same, until the end
    CHECK(is_capturing(stream));
    const auto graph = open->end();
    REQUIRE_FALSE(graph.has_value());
    CHECK(graph.error().rule() == "CaptureDoomed");
    CHECK(has(graph.error().text(), doom.says));
    CHECK_FALSE(is_capturing(stream));
    CHECK(has(refused(a), doom.says));
    if (doom.claims_b) refused(b);
    else CHECK((doom.rule == "CopyOverlap" || b.read().value() == of(4, 3)));
    CHECK(x.read().value() == of(4, 1));
    // The stream works, and a capture of it.
    REQUIRE(run(stream, kernels().copy, x.arg(), a.arg()).has_value());
    REQUIRE(run(stream, kernels().copy, a.arg(), b.arg()).has_value());
    CHECK(b.read(stream).value() == of(4, 1));
    const Graph again = captured(stream, [&] { run(stream, kernels().fill, claimed.arg(), scalar(9)).value(); });
    REQUIRE(again.replay(stream).has_value());
    CHECK(claimed.read().value() == of(4, 9));
    CHECK(local(client).failures().empty());
  }
}

TEST_CASE("what an operation before it overwrites is no claimed input of a recorded operation") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), claimed = made(client, of(4, 4)), b = made(client, of(4, 5));
  REQUIRE_FALSE(run(stream, kernels().broken, x.arg(), claimed.arg()).has_value());
  const Graph graph = captured(stream, [&] {
    REQUIRE(run(stream, kernels().copy, x.arg(), claimed.arg()).has_value());
    REQUIRE(run(stream, kernels().copy, claimed.arg(), b.arg()).has_value());
  });
  refused(claimed);  // nothing is written yet
  REQUIRE(graph.replay(stream).has_value());
  CHECK(claimed.read().value() == of(4, 1));
  CHECK(b.read().value() == of(4, 1));
}

TEST_CASE("a capture that another stream ends is torn down, and says who prepared it, who ended it and what had doomed it") {
  const Client client = graph_client();
  const Stream stream = client.stream(), other = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 2)), b = made(client, of(4, 3));
  for (const bool doomed : {false, true}) {
    CAPTURE(doomed);
    auto capture = GraphCapture::prepare(stream);
    REQUIRE(capture->begin().has_value());
    REQUIRE(run(stream, kernels().copy, x.arg(), a.arg()).has_value());
    if (doomed) CHECK_FALSE(run(stream, kernels().broken, x.arg(), b.arg()).has_value());
    const auto graph = capture->end(other);
    REQUIRE_FALSE(graph.has_value());
    CHECK(graph.error().code() == ErrorCode::Several);
    REQUIRE(graph.error().causes().size() == (doomed ? 2 : 1));
    const Error& state = graph.error().causes()[0];
    CHECK(state.rule() == "CaptureAbandoned");
    CHECK(has(state.text(), "stream " + std::to_string(stream.id())));
    CHECK(has(state.text(), "stream " + std::to_string(other.id())));
    if (doomed) CHECK(graph.error().causes()[1].kernel() == "broken");
    CHECK_FALSE(is_capturing(stream));
    CHECK(has(refused(a), "CaptureAbandoned"));
    REQUIRE(a.write(of(4, 2)).has_value());
    CHECK(rule_of(capture->end()) == "CaptureNotRecording");
  }
}

TEST_CASE("a capture that is aborted, or dropped by an exception, claims nothing") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto a = made(client, of(4, 2));
  CHECK_THROWS_AS((void)capture(stream,
                                [&] {
                                  run(stream, kernels().fill, a.arg(), scalar(1)).value();
                                  throw std::runtime_error("the body threw");
                                }),
                  std::runtime_error);
  CHECK_FALSE(is_capturing(stream));
  {
    auto open = GraphCapture::prepare(stream);
    REQUIRE(open->begin().has_value());
    run(stream, kernels().fill, a.arg(), scalar(1)).value();
    open->abort();
    run(stream, kernels().add, a.arg(), scalar(1)).value();
  }
  CHECK(a.read(stream).value() == of(4, 3));
}

TEST_CASE("a device that cannot make the graph says so at the end of the capture, and what was recorded is claimed") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto a = made(client, of(4, 2));
  const auto before = sim_count("graphs");
  for (const char* entry : {"cuStreamBeginCapture", "cuStreamEndCapture", "cuGraphInstantiate", "cuLaunchKernelEx"}) {
    CAPTURE(entry);
    auto open = GraphCapture::prepare(stream);
    REQUIRE(open->begin().has_value());
    REQUIRE(run(stream, kernels().fill, a.arg(), scalar(1)).has_value());
    {
      const SimScript script(std::string(R"({"quiet": true, "calls": [{"name": ")") + entry +
                             R"(", "code": "CUDA_ERROR_OUT_OF_MEMORY"}]})");
      const auto graph = open->end();
      REQUIRE_FALSE(graph.has_value());
      CHECK(graph.error().code() == ErrorCode::LaunchOutOfMemory);
    }
    refused(a);
    REQUIRE(a.write(of(4, 2)).has_value());
  }
  CHECK(sim_count("graphs") == before);
  const Graph graph = captured(stream, [&] { run(stream, kernels().fill, a.arg(), scalar(1)).value(); });
  REQUIRE(graph.replay(stream).has_value());
  CHECK(a.read().value() == of(4, 1));
}

// --- what concerns a replay -------------------------------------------------------------------------------------------------------

TEST_CASE("a replay whose input is claimed is skipped, and what it writes carries the failure; a write of the input heals it") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 0)), b = made(client, of(4, 0)), bad = made(client, of(4, 0));
  const Graph graph = captured(stream, [&] {
    run(stream, kernels().copy, x.arg(), a.arg()).value();
    run(stream, kernels().copy, a.arg(), b.arg()).value();
  });
  REQUIRE_FALSE(run(stream, kernels().broken, a.arg(), x.arg()).has_value());
  const auto skipped = graph.replay(stream);
  REQUIRE_FALSE(skipped.has_value());
  CHECK(skipped.error().code() == ErrorCode::Skipped);
  CHECK(has(skipped.error().text(), "Skipped `graph " + std::to_string(graph.id()) + "`: it needs 'x' (memory "));
  for (const auto& buffer : {a, b}) {
    const std::string text = refused(buffer);
    CHECK(has(text, "skipped `graph "));
    CHECK(has(text, "recording went wrong"));
  }
  REQUIRE(x.write(of(4, 5)).has_value());
  REQUIRE(graph.replay(stream).has_value());  // a and b are overwritten whole
  CHECK(a.read().value() == of(4, 5));
  CHECK(b.read().value() == of(4, 5));
  CHECK(local(client).failures().empty());
}

TEST_CASE("a fault in one launch of a graph names it, claims all that the graph writes and nothing else, and is healed by what covers it") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 0)), b = made(client, of(4, 0)), y = made(client, of(4, 0)),
       z = made(client, of(4, 0)), after = made(client, of(4, 0));
  const Graph graph = captured(stream, [&] {
    run(stream, kernels().copy, x.arg(), a.arg()).value();
    a.slice(0, 1).write(stream, {3}).value();
    run(stream, kernels().scatter, z.slice(0, 2).arg(), scalar(8)).value();
    run_blocks(stream, kernels().fill, 5, y.arg(), scalar(7)).value();  // one beyond its end
    run(stream, kernels().copy, y.arg(), b.arg()).value();
  });
  REQUIRE(graph.replay(stream).has_value());
  REQUIRE(run(stream, kernels().copy, b.arg(), after.arg()).has_value());
  const std::string text = refused(y);
  CHECK(has(text, "out of range: store of 'y' at index 4 of dimension 0, whose extent is 4"));
  CHECK(has(text, "(operation 4 of 5 in a replay of graph " + std::to_string(graph.id()) + ")"));
  CHECK(has(text, "kernel: fill"));
  CHECK(has(text, "at: fake.cpp:10"));
  refused(a);
  refused(b);
  refused(z.slice(0, 2));
  CHECK(z.slice(2, 2).read().value() == of(2, 0));
  CHECK(x.read().value() == of(4, 1));
  CHECK(has(refused(after), "voided `copy_k`: it had been enqueued, and read 'x' (memory "));
  // The second graph covers a and b, and only it reads z.
  REQUIRE(y.write(of(4, 2)).has_value());
  const Graph good = captured(stream, [&] {
    run(stream, kernels().copy, y.arg(), a.arg()).value();
    run(stream, kernels().copy, a.arg(), b.arg()).value();
  });
  REQUIRE(good.replay(stream).has_value());
  CHECK(a.read().value() == of(4, 2));
  CHECK(b.read().value() == of(4, 2));
  refused(z.slice(0, 2));
  REQUIRE(z.slice(0, 2).write(of(2, 6)).has_value());
  CHECK(z.read().value() == std::vector<u32>{6, 6, 0, 0});
  // The next replay of the first faults again, by itself.
  REQUIRE(graph.replay(stream).has_value());
  CHECK(has(refused(a), "out of range"));
}

TEST_CASE("of replays that follow each other the one that faults is found, and later ones only as far as they read what it claims") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto blocks = made(client, of(8, 1)), y = made(client, of(4, 0)), count = made(client, {0}), out = made(client, {0});
  // Faults where `blocks` has been made small: the copy reads beyond it.
  const Graph graph = captured(stream, [&] {
    run(stream, kernels().add, count.arg(), scalar(1)).value();
    run(stream, kernels().copy, count.arg(), out.arg()).value();
  });
  const Graph faulty = captured(stream, [&] { run_blocks(stream, kernels().fill, 9, out.arg(), scalar(1)).value(); });
  for (int i = 0; i < 3; ++i) REQUIRE(graph.replay(stream).has_value());
  REQUIRE(faulty.replay(stream).has_value());
  refused(out);
  CHECK(count.read().value() == std::vector<u32>{3});
  REQUIRE(graph.replay(stream).has_value());  // overwrites what was claimed
  CHECK(out.read().value() == std::vector<u32>{4});
  // With the replays behind it enqueued before anybody knows.
  REQUIRE(faulty.replay(stream).has_value());
  for (int i = 0; i < 3; ++i) REQUIRE(graph.replay(stream).has_value());
  CHECK(out.read().value() == std::vector<u32>{7});
  REQUIRE(graph.replay(stream).has_value());
  REQUIRE(faulty.replay(stream).has_value());
  refused(out);
  CHECK(count.read().value() == std::vector<u32>{8});
}

TEST_CASE("of several faults in a replay the first in its order is told") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto y = made(client, of(4, 0)), z = made(client, of(2, 0));
  const Graph graph = captured(stream, [&] {
    run_blocks(stream, kernels().fill, 4, y.arg(), scalar(7)).value();
    run_blocks(stream, kernels().fill, 3, z.arg(), scalar(7)).value();
    run_blocks(stream, kernels().fill, 5, y.arg(), scalar(7)).value();
  });
  REQUIRE(graph.replay(stream).has_value());
  CHECK(has(refused(y), "(operation 2 of 3 in a replay"));
}

TEST_CASE("lines that a graph's kernels log are told once for each replay, in order") {
  const Client client = graph_client();
  std::vector<std::string> lines;
  client.on_log([&](const LogLine& line) { lines.emplace_back(line.text); });
  const Stream stream = client.stream();
  auto y = made(client, {0, 10});
  const Graph graph = captured(stream, [&] {
    REQUIRE(graph_test::speaks(stream, {{1}, {1}}, y).has_value());
    REQUIRE(graph_test::speaks(stream, {{1}, {1}}, y).has_value());
  });
  for (int i = 0; i < 12; ++i) REQUIRE(graph.replay(stream).has_value());
  CHECK(y.read().value() == std::vector<u32>{24, 10});
  std::vector<std::string> wanted;
  for (int i = 1; i <= 24; ++i) wanted.push_back("y[0] = " + std::to_string(i));
  CHECK(lines == wanted);
  CHECK(local(client).captures().instances().size() <= rt::Captures::kInstances);
}

TEST_CASE("a sink of log lines may replay a graph that logs") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto y = made(client, {0});
  const Graph graph = captured(stream, [&] { graph_test::speaks(stream, {{1}, {1}}, y).value(); });
  int lines = 0;
  client.on_log([&](const LogLine&) {
    if (++lines > 10) return;
    graph.replay(stream).value();
  });
  REQUIRE(graph.replay(stream).has_value());
  for (int i = 0; i < 12; ++i) REQUIRE(y.read().has_value());
  CHECK(lines == 11);
  CHECK(y.read().value() == std::vector<u32>{11});
  client.on_log({});
}

TEST_CASE("a trap in a replay loses the device, which says so; what was to be written is claimed and nothing else can be done") {
  const Client client = graph_client(true);
  const SimScript quiet(R"({"quiet": true})");
  const Stream stream = client.stream();
  auto y = made(client, {1}), z = made(client, {1}), w = made(client, {1});
  const Graph other = captured(stream, [&] { run(stream, kernels().fill, w.arg(), scalar(2)).value(); });
  const Graph graph = captured(stream, [&] {
    graph_test::traps(stream, {{1}, {1}}, y).value();
    run(stream, kernels().copy, y.arg(), z.arg()).value();
  });
  REQUIRE(graph.replay(stream).has_value());
  CHECK(z.read().value() == std::vector<u32>{2});
  REQUIRE(y.write({13}).has_value());
  (void)graph.replay(stream);
  const auto read = z.read();
  REQUIRE_FALSE(read.has_value());
  CHECK(has(read.error().text(), "trap: thirteen"));
  CHECK(has(read.error().text(), "(operation 1 of 2 in a replay of graph"));
  CHECK_FALSE(graph.replay(stream).has_value());
  const auto again = other.replay(stream);
  REQUIRE_FALSE(again.has_value());
  CHECK(again.error().is_device_poisoned());
  CHECK_FALSE(client.check(w).has_value());
  const auto destroyed = graph.destroy();
  REQUIRE_FALSE(destroyed.has_value());
  CHECK(destroyed.error().is_device_poisoned());
  CHECK_FALSE(client.check(y, z).has_value());
  CHECK_FALSE(capture(stream, [&] { (void)run(stream, kernels().fill, z.arg(), scalar(1)); }).has_value());
}

TEST_CASE("a replay that the driver refuses claims what it was to write") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 0));
  const Graph graph = captured(stream, [&] { run(stream, kernels().copy, x.arg(), a.arg()).value(); });
  {
    const SimScript script(R"({"quiet": true, "calls": [{"name": "cuGraphLaunch", "code": "CUDA_ERROR_OUT_OF_MEMORY"}]})");
    const auto replayed = graph.replay(stream);
    REQUIRE_FALSE(replayed.has_value());
    CHECK(replayed.error().code() == ErrorCode::LaunchOutOfMemory);
  }
  refused(a);
  CHECK(x.read().value() == of(4, 1));
  REQUIRE(graph.replay(stream).has_value());
  CHECK(a.read().value() == of(4, 1));
}

TEST_CASE("a second instance that the device has no memory for is not needed: the replay waits for the first") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto a = made(client, of(4, 0));
  const Graph graph = captured(stream, [&] { run(stream, kernels().add, a.arg(), scalar(1)).value(); });
  const SimScript script(R"({"quiet": true, "calls": [{"name": "cuGraphInstantiate", "code": "CUDA_ERROR_OUT_OF_MEMORY"}]})");
  for (int i = 0; i < 10; ++i) REQUIRE(graph.replay(stream).has_value());
  CHECK(a.read().value() == of(4, 10));
}

TEST_CASE("a graph that is not there, was destroyed or is of another device says so, and touches nothing") {
  const Client client = graph_client();
  const FakeServer elsewhere(1);
  const Stream stream = client.stream();
  auto a = made(client, of(4, 0));
  CHECK(rule_of(Graph().replay(stream)) == "NoGraph");
  CHECK(rule_of(Graph().destroy()) == "NoGraph");
  CHECK(Graph().id() == 0);
  CHECK_FALSE(static_cast<bool>(Graph()));
  const Graph graph = captured(stream, [&] { run(stream, kernels().add, a.arg(), scalar(1)).value(); });
  const auto foreign = graph.replay(elsewhere.client.stream());
  CHECK(rule_of(foreign) == "ForeignHandle");
  CHECK(foreign.error().code() == ErrorCode::ForeignHandle);
  CHECK(rule_of(GraphCapture::prepare(stream)->end(elsewhere.client.stream())) == "ForeignHandle");
  REQUIRE(graph.replay(stream).has_value());
  const Graph copy = graph;
  CHECK(copy == graph);
  REQUIRE(graph.destroy().has_value());  // waits
  CHECK(rule_of(copy.replay(stream)) == "GraphDestroyed");
  CHECK(rule_of(copy.destroy()) == "GraphDestroyed");
  CHECK(local(client).captures().instances().size() == 0);
  CHECK(a.read().value() == of(4, 1));
}

TEST_CASE("no host memory in a capture or a replay is an error, never a wrong byte") {
  if (!allocations_counted()) return;
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 0)), b = made(client, of(4, 0));
  run(stream, kernels().copy, x.arg(), a.arg()).value();
  run(stream, kernels().copy, a.arg(), b.arg()).value();
  REQUIRE(client.sync().has_value());
  for (std::uint64_t after = 0; after < 60; ++after) {
    CAPTURE(after);
    REQUIRE(a.write(of(4, 0)).has_value());
    REQUIRE(b.write(of(4, 0)).has_value());
    REQUIRE(client.sync().has_value());
    Result<Graph> graph = Graph();
    Result<void> replayed;
    {
      const NoMemory none(after);
      graph = rt::or_no_memory([&] {
        return capture(stream, [&] {
          (void)run(stream, kernels().copy, x.arg(), a.arg());
          (void)run(stream, kernels().copy, a.arg(), b.arg());
        });
      });
      if (graph.has_value()) replayed = graph->replay(stream);
    }
    CHECK_FALSE(is_capturing(stream));
    CHECK(capture(stream, [] {}).has_value());  // what had no memory left no capture open
    CHECK(memory_cleanup(client).has_value());
    const auto read = b.read();
    if (!graph.has_value() || !replayed.has_value()) {
      if (read.has_value()) CHECK(read.value() == of(4, 0));
      continue;
    }
    CHECK(graph->operations() == 2);
    CHECK(read.value() == of(4, 1));
  }
  CHECK(client.sync().has_value());
}
