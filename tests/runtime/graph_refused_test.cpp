// What a stream that is recorded was to do and could not even be asked of the runtime: the graph would lack it.
#include <doctest/doctest.h>

#include <functional>
#include <string>

#include "kiln/kiln.h"
#include "kiln/runtime/operation.h"
#include "runtime/graph_devices.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("an operation that is refused before it comes to the device dooms the capture of its stream: no graph lacks it unnoticed") {
  const Client client = graph_client();
  const Client other(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}}).value()));
  const Stream stream = client.stream(), foreign = other.stream();
  REQUIRE(made(other, of(4, 1)).write(foreign, of(4, 2)).has_value());
  auto x = made(client, of(4, 1)), a = made(client, of(4, 2)), b = made(client, of(4, 3));
  const StridedView<u32, 1> every = StridedView<u32, 1>(b).range(0, 0, 2, 2);
  const auto pinned = HostBuffer<u32>::make(client, 4).value();
  struct Doom {
    const char* rule;
    bool claims_b;
    std::function<Result<void>()> operation;
  };
  const Doom table[] = {
      {"BufferSize", true, [&] { return b.write(stream, of(5, 9)); }},
      {"BufferSize", true, [&] { return StridedView<u32, 1>(every).write(stream, of(5, 9)); }},
      {"OverlappingStrides", true, [&] { return StridedView<u32, 1>(b.slice(0, 1)).broadcast(0, 3).write(stream, of(3, 9)); }},
      {"CopySize", true, [&] { return StridedView<u32, 1>(every).copy_from(stream, StridedView<u32, 1>(x)); }},
      {"HostRange", true, [&] { return pinned.upload(stream, b, 1); }},
      {"HostRange", false, [&] { return HostBuffer<u32>(pinned).download(stream, b, 1); }},
      {"BufferSize", true, [&] { return op::write(b, of(5, 9)).sync(stream); }},
      {"BorrowedBufferGone", true,
       [&] {
         auto copy = [&] {
           const auto gone = made(client, of(4, 5));
           return op::copy(b, gone);
         }();
         return std::move(copy).sync(stream);
       }},
      {"NoFunction", false, [&] { return stream.call({}); }},
      {"ForeignHandle", false, [&] { return stream.wait(foreign.record()); }},
  };
  for (const Doom& doom : table) {
    CAPTURE(doom.rule);
    REQUIRE(b.write(of(4, 3)).has_value());
    auto open = GraphCapture::prepare(stream);
    REQUIRE(open->begin().has_value());
    REQUIRE(run(stream, kernels().copy, x.arg(), a.arg()).has_value());
    const auto failed = doom.operation();
    REQUIRE_FALSE(failed.has_value());
    CHECK(failed.error().rule() == doom.rule);
    const auto graph = open->end();
    REQUIRE_FALSE(graph.has_value());
    CHECK(graph.error().rule() == "CaptureDoomed");
    CHECK(graph.error().root().rule() == doom.rule);
    refused(a);
    if (doom.claims_b) refused(b);
    else CHECK(b.read().value() == of(4, 3));
    REQUIRE(a.write(of(4, 2)).has_value());
  }
}
