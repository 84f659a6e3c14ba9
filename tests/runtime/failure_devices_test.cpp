// What a user sees of failures where it depends on the device: streams that share a queue, a grid that cannot be read, the next kernel of a
// device that is lost.
#include <doctest/doctest.h>

#include <string>

#include "kiln/kiln.h"
#include "runtime/graph_devices.h"

using namespace kiln;
using namespace kiln::test;

namespace failure_devices {

KILN_KERNEL(traps, (InOut<u32> y))
{
  If (y[0] == 2u) { trap("it came to an end"); }
  y[0] += 1;
}

}  // namespace failure_devices

namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

}  // namespace

TEST_CASE("chains in turns on two streams of one queue: the good one gives its data, the other one its failure, again and again") {
  const Client client = graph_client();
  const Stream good = client.stream(), bad(client, good.id() + rt::kNormalQueues);
  REQUIRE(rt::queue_of(good.id()) == rt::queue_of(bad.id()));
  for (const bool late : {false, true}) {
    CAPTURE(late);
    auto seed = made(client, of(4, 5)), a = made(client, of(4, 0)), b = made(client, of(4, 0)), c = made(client, of(4, 0)),
         x = made(client, of(4, 0)), y = made(client, of(4, 0)), z = made(client, of(4, 0));
    REQUIRE(run(good, kernels().fill, a.arg(), scalar(7)).has_value());
    if (late) REQUIRE(run_blocks(bad, kernels().fill, 5, x.arg(), scalar(1)).has_value());  // of 4 elements
    else REQUIRE_FALSE(run(bad, kernels().broken, seed.arg(), x.arg()).has_value());
    REQUIRE(run(good, kernels().copy, a.arg(), b.arg()).has_value());
    const bool copied = run(bad, kernels().copy, x.arg(), y.arg()).has_value();
    CHECK((late || !copied));
    REQUIRE(run(good, kernels().copy, b.arg(), c.arg()).has_value());
    static_cast<void>(run(bad, kernels().copy, y.arg(), z.arg()));
    for (const Stream& stream : {good, bad}) CHECK(stream.flush().has_value());  // no launch's failure
    for (int time = 0; time < 2; ++time) {
      const std::string text = refused(z);
      CAPTURE(text);
      CHECK(occurrences(text, "`copy_k`") == 2);  // skipped, or voided where it had been enqueued
      if (!late) CHECK(occurrences(text, "skipped `") == 2);
      CHECK(has(text, "failure #"));
      CHECK(has(text, late ? "kernel: fill" : "recording went wrong"));
      CHECK(c.read(good).value() == of(4, 7));
      CHECK(c.read(bad).value() == of(4, 7));
      CHECK(seed.read(bad).value() == of(4, 5));
      for (const Stream& stream : {good, bad}) CHECK(stream.sync().has_value());
    }
    CHECK(client.check(a, b, c).has_value());
    CHECK_FALSE(client.check(c, x).has_value());
  }
  CHECK(local(client).failures().empty());  // with the buffers
}

TEST_CASE("a launch whose grid cannot be read claims what it was to write with the driver's answer, and the next one works") {
  const Client client = sim_server_client();
  const Stream stream = client.stream();
  auto grid = made(client, {4, 1, 1}), y = made(client, of(4, 2)), beside = made(client, of(4, 3));
  const LaunchArg args[] = {y.arg(), scalar(9)};
  const Binding counts = grid.binding();
  LaunchRequest request;
  request.variant = &kernels().fill;
  request.args = args;
  request.dynamic_grid = &counts;
  REQUIRE(stream.sync().has_value());
  {
    const SimScript script(R"({"quiet": true, "calls": [{"name": "cuMemcpyDtoHAsync", "code": "CUDA_ERROR_INVALID_VALUE"}]})");
    const auto failed = launch(stream, request);
    REQUIRE_FALSE(failed.has_value());
    CHECK(has(failed.error().text(), "CUDA_ERROR_INVALID_VALUE"));
    CHECK(failed.error().kernel() == "fill");
  }
  CHECK(has(refused(y), "CUDA_ERROR_INVALID_VALUE"));
  CHECK(grid.read().value() == std::vector<u32>{4, 1, 1});
  CHECK(beside.read().value() == of(4, 3));
  REQUIRE(launch(stream, request).has_value());
  CHECK(y.read().value() == of(4, 9));
}

TEST_CASE("the next kernel of a lost device is lost with it, and not refused: one that is not compiled yet as one that is") {
  const Client client = graph_client(true);
  const SimScript quiet(R"({"quiet": true})");
  const Stream stream = client.stream();
  auto x = made(client, of(4, 1)), y = made(client, of(4, 2)), z = made(client, of(4, 3));
  REQUIRE(run(stream, kernels().fill, y.arg(), scalar(2)).has_value());
  REQUIRE(client.sync().has_value());
  static_cast<void>(failure_devices::traps(stream, {{1}, {1}}, y));
  CHECK_FALSE(client.sync().has_value());
  const Variant unknown(copy_ir("not_compiled_yet"));
  for (const auto& [what, launched] : {std::pair<const char*, Result<void>>{"compiled", run(stream, kernels().fill, y.arg(), scalar(2))},
                                       {"not compiled", run(stream, unknown, x.arg(), z.arg())},
                                       {"not compiled, again", run(stream, unknown, x.arg(), z.arg())}}) {
    CAPTURE(std::string(what));
    REQUIRE_FALSE(launched.has_value());
    CHECK(launched.error().is_device_poisoned());
    CHECK_FALSE(launched.error().is_refusal());
    CHECK(has(launched.error().text(), "it came to an end"));
  }
  for (const Buffer<u32>& written : {y, z}) {
    const auto checked = client.check(written);
    REQUIRE_FALSE(checked.has_value());
    CHECK(checked.error().is_device_poisoned());
    CHECK_FALSE(checked.error().is_refusal());
  }
}
