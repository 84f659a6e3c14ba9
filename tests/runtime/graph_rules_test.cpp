// What a capture forbids from prepare() on and what not, and what the end of a graph waits for; on each device.
#include <doctest/doctest.h>

#include <atomic>
#include <string>
#include <thread>

#include "kiln/runtime/memory.h"
#include "kiln/runtime/profile.h"
#include "runtime/graph_devices.h"
#include "runtime/held.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("while a stream is captured no memory is rearranged, and it takes none from the device while it is recorded; others do") {
  const Client client = graph_client();
  const Stream stream = client.stream(), other = client.stream();
  constexpr std::uint64_t kLarge = std::uint64_t{48} << 20;  // more than is there already
  auto a = made(client, of(4, 1));
  const auto rearranged = [&](bool refused) {
    for (const Result<void>& result : {[&] {
                                         const auto freed = memory_cleanup(client);
                                         return freed.has_value() ? Result<void>() : Result<void>(freed.error());
                                       }(),
                                       install_memory_pools(client, MemoryPools::exclusive_pages())}) {
      CHECK(result.has_value() == !refused);
      if (!result.has_value()) CHECK(result.error().code() == ErrorCode::PageUpdateForbidden);
    }
  };
  for (const bool allocates : {false, true}) {
    CAPTURE(allocates);
    REQUIRE(a.write(of(4, 1)).has_value());
    auto open = GraphCapture::prepare(stream);
    REQUIRE(open.has_value());
    rearranged(true);
    CHECK(kiln::allocate(stream, 4096).has_value());  // a warm-up may
    REQUIRE(open->begin().has_value());
    rearranged(true);
    CHECK(kiln::allocate(other, kLarge).has_value());
    REQUIRE(run(stream, kernels().fill, a.arg(), scalar(2)).has_value());
    if (allocates) {
      const auto none = kiln::allocate(stream, 2 * kLarge);
      REQUIRE_FALSE(none.has_value());
      CHECK(none.error().code() == ErrorCode::PageUpdateForbidden);
      CHECK_FALSE(none.error().may_succeed_after_reclaim());
      const auto graph = open->end();
      REQUIRE_FALSE(graph.has_value());
      CHECK(rule_of(graph) == "CaptureDoomed");
      CHECK(graph.error().root().code() == ErrorCode::PageUpdateForbidden);
      CHECK(has(refused(a), "CaptureDoomed"));
      rearranged(false);
      CHECK(kiln::allocate(stream, 2 * kLarge).has_value());
    } else {
      const auto graph = open->end();
      REQUIRE_MESSAGE(graph.has_value(), graph.error().text());
      rearranged(false);
      REQUIRE(graph->replay(stream).has_value());
      rearranged(false);
      CHECK(a.read(stream).value() == of(4, 2));
    }
  }
}

TEST_CASE("what a stream does between prepare and begin runs, is no part of the graph, and dooms nothing when it fails") {
  const Client client = graph_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(4, 2)), b = made(client, of(4, 3)), c = made(client, of(4, 4));
  auto open = GraphCapture::prepare(stream);
  REQUIRE(run(stream, kernels().copy, x.arg(), a.arg()).has_value());
  CHECK(a.read(stream).value() == of(4, 1));
  REQUIRE_FALSE(run(stream, kernels().broken, x.arg(), b.arg()).has_value());
  const auto skipped = run(stream, kernels().copy, b.arg(), c.arg());
  REQUIRE_FALSE(skipped.has_value());
  CHECK(skipped.error().code() == ErrorCode::Skipped);
  REQUIRE(a.write(stream, of(4, 5)).has_value());
  REQUIRE(open->begin().has_value());
  REQUIRE(run(stream, kernels().fill, c.arg(), scalar(9)).has_value());
  const auto graph = open->end();
  REQUIRE_MESSAGE(graph.has_value(), graph.error().text());
  CHECK(graph->operations() == 1);
  refused(b);
  refused(c);  // which was to be copied of b
  REQUIRE(graph->replay(stream).has_value());
  CHECK(c.read().value() == of(4, 9));
  CHECK(a.read().value() == of(4, 5));
  refused(b);
}

TEST_CASE("a profile window of a stream that is recorded neither begins nor ends, and is as it was behind the capture") {
  const Client client = graph_client();
  const Stream stream = client.stream(), other = client.stream();
  auto a = made(client, of(4, 1)), b = made(client, of(4, 1));
  const ProfileToken window = start_profile(stream).value();
  REQUIRE(run(stream, kernels().add, a.arg(), scalar(1)).has_value());
  const auto graph = capture(stream, [&] {
    REQUIRE(run(stream, kernels().add, a.arg(), scalar(1)).has_value());
    CHECK(rule_of(start_profile(stream)) == "NotInCapture");
    CHECK(rule_of(end_profile(stream, window)) == "NotInCapture");
    CHECK(profile(other, [&] { run(other, kernels().add, b.arg(), scalar(1)).value(); }).value().count() > 0);
  });
  REQUIRE_MESSAGE(graph.has_value(), graph.error().text());
  CHECK(end_profile(stream, window).value().count() > 0);
  CHECK(a.read().value() == of(4, 2));
  CHECK(b.read().value() == of(4, 2));
}

TEST_CASE("destroying a graph waits for its replays, those that are held back too, and for nothing else") {
  const Client client = graph_client();
  const Stream stream = client.stream(), other = client.stream();
  auto a = made(client, of(4, 1));
  const Graph graph = capture(stream, [&] { run(stream, kernels().add, a.arg(), scalar(1)).value(); }).value();
  const Graph idle = capture(stream, [&] { run(stream, kernels().add, a.arg(), scalar(1)).value(); }).value();
  Held held(stream), beside(other);
  REQUIRE(graph.replay(stream).has_value());
  CHECK(idle.destroy().has_value());  // nothing of it runs
  std::atomic<bool> over{false};
  std::thread destroyer([&] {
    CHECK(graph.destroy().has_value());
    over = true;
  });
  const Stream third = client.stream();
  // A replay that is only recorded, and refused once the graph is being destroyed.
  const auto recorded = [&] { return capture(third, [&] { static_cast<void>(graph.replay(third)); }).has_value(); };
  while (recorded()) std::this_thread::yield();
  for (int i = 0; i < 100; ++i) CHECK_FALSE(recorded());
  CHECK_FALSE(over);
  held.open();
  destroyer.join();
  beside.open();
  CHECK(a.read().value() == of(4, 2));
}

TEST_CASE("a replay that cannot be enqueued claims all that the graph writes, and nothing that it only reads") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), a = made(client, of(8, 2)), b = made(client, of(4, 3));
  const Graph graph = capture(stream, [&] {
                        run(stream, kernels().copy, x.arg(), a.slice(4, 4).arg()).value();
                        rt::copy(stream, b.slice(0, 2).binding(), x.slice(0, 2).binding()).value();
                        run(stream, kernels().add, b.slice(3, 1).arg(), scalar(1)).value();
                      }).value();
  {
    const SimScript script(R"({"quiet": true, "calls": [{"name": "cuGraphLaunch", "code": "CUDA_ERROR_INVALID_VALUE"}]})");
    CHECK_FALSE(graph.replay(stream).has_value());
  }
  refused(a.slice(4, 4));
  refused(b.slice(0, 2));
  refused(b.slice(3, 1));
  CHECK(a.slice(0, 4).read().value() == of(4, 2));
  CHECK(b.slice(2, 1).read().value() == of(1, 3));
  CHECK(x.read().value() == of(4, 1));
}
