// Memory that a stream lets go of between prepare() and begin(), and that a graph has, too.
#include <doctest/doctest.h>

#include <optional>

#include "kiln/kiln.h"
#include "kiln/runtime/memory.h"
#include "runtime/graph_devices.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("memory of a graph that ends in another capture's warm-up is freed once, and given to one buffer only") {
  const Client client = graph_client();
  const Stream stream = client.stream(), other = client.stream();
  const auto of_stream = [&] { return Buffer<u32>::over(client, kiln::allocate(stream, 64 * sizeof(u32)).value(), {64}).value(); };
  std::optional<Buffer<u32>> memory = of_stream();
  std::optional<Graph> graph = capture(other, [&] { rt::fill_zero(other, memory->binding()).value(); }).value();
  memory.reset();  // the graph has it
  GraphCapture warm_up = GraphCapture::prepare(stream).value();
  graph.reset();
  client.sync().value();
  REQUIRE(warm_up.begin().has_value());
  warm_up.abort();
  std::vector<Buffer<u32>> buffers;
  for (u32 i = 0; i < 8; ++i) {
    buffers.push_back(of_stream());
    buffers.back().write(stream, of(64, i)).value();
  }
  for (u32 i = 0; i < 8; ++i) CHECK(buffers[i].read(stream).value() == of(64, i));
  buffers.clear();
  client.sync().value();
  CHECK(memory_report(client).value().total.bytes_in_use == 0);
  CHECK(memory_cleanup(client).has_value());
}
