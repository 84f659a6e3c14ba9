// Work that a GPU holds back, because something of the host's is before it, and that the driver refuses when its turn comes: its bytes are
// claimed, whoever reads is told, and nothing else is lost.
#include <doctest/doctest.h>

#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "kiln/runtime/graph.h"
#include "kiln/runtime/memory.h"
#include "kiln/runtime/operation.h"
#include "kiln/runtime/staging.h"
#include "runtime/add_one.h"
#include "runtime/graph_devices.h"
#include "runtime/held.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// A call of the driver that is refused while one lives; the context goes on.
std::string refusing(const std::string& entry) {
  return R"({"quiet": true, "calls": [{"name": ")" + entry + R"(", "code": "CUDA_ERROR_INVALID_VALUE"}]})";
}
std::uint64_t last_of(const Client& client, const Stream& stream) {
  return local(client).device().last(rt::queue_of(stream.id())).position;
}
// Until one more task has its place in the stream.
void await_next(const Client& client, const Stream& stream, std::uint64_t last) {
  while (last_of(client, stream) == last) std::this_thread::yield();
}
bool is_refusal_of_driver(const Error& error) { return has(error.text(), "CUDA_ERROR_INVALID_VALUE"); }

}  // namespace

TEST_CASE("held work that the driver refuses at its turn claims what it was to write and nothing else, and the device goes on") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), y = made(client, of(4, 2)), beside = made(client, of(4, 3));
  auto host = HostBuffer<u32>::make(client, 4).value();
  const Graph graph = capture(stream, [&] { run(stream, kernels().copy, x.arg(), y.arg()).value(); }).value();
  struct Row {
    std::string what, entry;
    std::function<Result<void>()> enqueue;
  };
  const LaunchArg args[] = {y.arg()};
  const Row rows[] = {
      {"a launch", "cuLaunchKernelEx", [&] { return launch(stream, {&add_one(), {{1}, {32}}, args}); }},
      {"a copy", "cuMemcpyDtoDAsync", [&] { return rt::copy(stream, y.binding(), x.binding()); }},
      {"a fill", "cuMemsetD8Async", [&] { return rt::fill_zero(stream, y.binding()); }},
      {"a write", "cuMemcpyHtoDAsync", [&] { return y.write(stream, of(4, 9)); }},
      {"an upload", "cuMemcpyHtoDAsync", [&] { return host.upload(stream, y); }},
      {"a replay", "cuGraphLaunch", [&] { return graph.replay(stream); }},
  };
  for (const Row& row : rows) {
    CAPTURE(row.what);
    REQUIRE(y.write(stream, of(4, 2)).has_value());
    REQUIRE(stream.sync().has_value());
    {
      Held held(stream);
      REQUIRE(row.enqueue().has_value());
      const SimScript script(refusing(row.entry));
      held.open();
      CHECK(stream.sync().has_value());  // no failure of the device
    }
    const auto read = y.read();
    REQUIRE_FALSE(read.has_value());
    CHECK_MESSAGE(is_refusal_of_driver(read.error()), read.error().text());
    CHECK(x.read().value() == of(4, 1));
    CHECK(beside.read().value() == of(4, 3));
    REQUIRE(y.write(stream, of(4, 5)).has_value());
    REQUIRE(launch(stream, {&add_one(), {{1}, {32}}, args}).has_value());
    CHECK(y.read().value() == of(4, 6));
  }
}

TEST_CASE("what reads a refused write's bytes behind it carries the refusal, and a write of all of them heals it") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), y = made(client, of(4, 2)), z = made(client, of(4, 3));
  {
    Held held(stream);
    REQUIRE(rt::fill_zero(stream, y.binding()).has_value());
    REQUIRE(run(stream, kernels().copy, y.arg(), z.arg()).has_value());
    const SimScript script(refusing("cuMemsetD8Async"));
    held.open();
    CHECK(stream.sync().has_value());
  }
  CHECK(is_refusal_of_driver(z.read().error()));
  CHECK(is_refusal_of_driver(client.check(y).error()));
  REQUIRE(rt::copy(stream, y.binding(), x.binding()).has_value());
  REQUIRE(run(stream, kernels().copy, y.arg(), z.arg()).has_value());
  CHECK(z.read().value() == of(4, 1));
}

TEST_CASE("a read whose copy is held and refused gives the refusal and no bytes, whichever way it is made") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto y = made(client, of(4, 7));
  auto host = HostBuffer<u32>::make(client, 4).value();
  REQUIRE(stream.sync().has_value());
  const std::string script_text = refusing("cuMemcpyDtoHAsync");
  SUBCASE("a thread waits") {
    Result<std::vector<u32>> read = of(4, 0);
    Held held(stream);
    const std::uint64_t last = last_of(client, stream);
    std::thread reader([&] { read = y.read(stream); });
    await_next(client, stream, last);
    {
      const SimScript script(script_text);
      held.open();
      reader.join();
    }
    REQUIRE_FALSE(read.has_value());
    CHECK_MESSAGE(is_refusal_of_driver(read.error()), read.error().text());
  }
  SUBCASE("an operation") {
    Held held(stream);
    auto running = op::read(y).start(stream);
    const SimScript script(script_text);
    held.open();
    const auto read = std::move(running).sync();
    REQUIRE_FALSE(read.has_value());
    CHECK_MESSAGE(is_refusal_of_driver(read.error()), read.error().text());
  }
  SUBCASE("a download") {
    std::ranges::fill(host.write().value(), 40u);
    Held held(stream);
    REQUIRE(host.download(stream, y).has_value());
    {
      const SimScript script(script_text);
      held.open();
      const auto read = host.read();
      REQUIRE_FALSE(read.has_value());
      CHECK_MESSAGE(is_refusal_of_driver(read.error()), read.error().text());
    }
    REQUIRE(host.download(stream, y).has_value());
    CHECK(host[3] == 7);
  }
  SUBCASE("rows") {
    auto m = Buffer<u32, 2>::from_host(client, of(16, 3), {4, 4}).value();
    const StridedView<u32, 2> columns = StridedView(m).range(1, 1, 2, 2);
    Result<std::vector<u32>> read = of(4, 0);
    Held held(stream);
    const std::uint64_t last = last_of(client, stream);
    std::thread reader([&] { read = columns.read(stream); });
    await_next(client, stream, last);
    {
      const SimScript script(script_text);
      held.open();
      reader.join();
    }
    REQUIRE_FALSE(read.has_value());
    CHECK_MESSAGE(is_refusal_of_driver(read.error()), read.error().text());
    CHECK(columns.read(stream).value() == of(8, 3));
  }
  CHECK(y.read().value() == of(4, 7));  // nothing is wrong with the bytes
}

TEST_CASE("a wait for an event that is held and refused by the driver orders what is behind it all the same") {
  const Client client = sim_server_client();
  const Stream first = client.stream(), stream = client.stream();
  auto x = made(client, of(4, 1)), y = made(client, of(4, 2));
  const LaunchArg args[] = {x.arg()}, others[] = {y.arg()};
  REQUIRE(launch(first, {&add_one(), {{1}, {32}}, args}).has_value());
  REQUIRE(client.sync().has_value());
  bool in_order = false;
  Event there;
  {
    Held held(stream);
    const SimScript script(
        R"({"quiet": true, "slow": [{"ms": 20}], "calls": [{"name": "cuStreamWaitEvent", "code": "CUDA_ERROR_INVALID_VALUE"}]})");
    for (int i = 0; i < 20; ++i) REQUIRE(launch(first, {&add_one(), {{1}, {32}}, args}).has_value());
    there = first.record();
    REQUIRE(stream.wait(there).has_value());
    REQUIRE(launch(stream, {&add_one(), {{1}, {32}}, others}).has_value());
    REQUIRE(stream.call([&] { in_order = there.done(); }).has_value());
    held.open();
    CHECK(stream.sync().has_value());
  }
  CHECK(in_order);
  CHECK(y.read().value() == of(4, 3));
  CHECK(x.read().value() == of(4, 22));
}

TEST_CASE("memory whose move to another layout is held and refused is claimed: its bytes are at neither place") {
  const Client client = sim_server_client();
  const Stream own = client.default_stream(), stream = client.stream();
  auto y = made(client, of(4, 7)), other = made(client, of(4, 8));
  REQUIRE(client.sync().has_value());
  REQUIRE(install_memory_pools(client, MemoryPools::exclusive_pages()).has_value());
  const LaunchArg args[] = {y.arg()};
  std::thread cleaner;
  {
    Held held(stream);
    REQUIRE(launch(stream, {&add_one(), {{1}, {32}}, args}).has_value());  // the copy comes after it
    const std::uint64_t last = last_of(client, own);
    cleaner = std::thread([&] { CHECK(memory_cleanup(client).has_value()); });
    await_next(client, own, last);
    const SimScript script(refusing("cuMemcpyDtoDAsync"));
    held.open();
    cleaner.join();
    CHECK(client.sync().has_value());
  }
  const auto read = y.read();
  REQUIRE_FALSE(read.has_value());
  CHECK_MESSAGE(is_refusal_of_driver(read.error()), read.error().text());
  REQUIRE(y.write(of(4, 1)).has_value());
  CHECK(y.read().value() == of(4, 1));
}
