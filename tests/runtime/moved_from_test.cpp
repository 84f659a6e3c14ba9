// What was moved from is still one, or says that it is none: no use of it crashes.
#include <doctest/doctest.h>

#include <utility>
#include <vector>

#include "kiln/runtime/collective.h"
#include "kiln/runtime/layout.h"
#include "kiln/runtime/operation.h"
#include "kiln/runtime/prepared.h"
#include "kiln/runtime/staging.h"
#include "kiln/runtime/statistics.h"
#include "runtime/add_one.h"
#include "runtime/refusals.h"
#include "support/each_client.h"

using namespace kiln;
using namespace kiln::test;

TEST_CASE("a value of the runtime that was moved from is still one") {
  const Client client = each_client();
  const std::vector<u32> sevens(4, 7);
  auto b = Buffer<u32>::from_host(client, sevens).value();

  auto pinned = HostBuffer<u32>::make(client, 4).value();
  [[maybe_unused]] const auto pinned_too = std::move(pinned);
  REQUIRE(pinned.download(b).has_value());
  CHECK(pinned[3] == 7);

  StridedView<u32, 1> view(b);
  [[maybe_unused]] const auto view_too = std::move(view);
  CHECK(view.read().value() == sevens);

  auto pitched = PitchedBuffer<u32, 2>::from_host(client, sevens, {2, 2}).value();
  [[maybe_unused]] const auto pitched_too = std::move(pitched);
  CHECK(pitched.read().value() == sevens);

  StreamPolicy policy = StreamPolicy::round_robin(client, 2);
  [[maybe_unused]] const auto policy_too = std::move(policy);
  CHECK(op::read(b).sync(policy).value() == sevens);

  auto shared = op::share(op::read(b));
  [[maybe_unused]] const auto shared_too = std::move(shared);
  CHECK(*shared.get().sync().value() == sevens);

  StatisticsCollector collector;
  [[maybe_unused]] const auto collector_too = std::move(collector);
  StatisticsReader reader = collector.reader();
  [[maybe_unused]] const auto reader_too = std::move(reader);
  CHECK(reader.read().compilation.registered == 0);

  Error error(ErrorCode::Generic, "what was wrong");
  [[maybe_unused]] const Error error_too = std::move(error);
  CHECK(error.text() == "what was wrong");

  auto group = Communicator::init({Client::open("cpu").value()}).value();
  [[maybe_unused]] const auto group_too = std::move(group);
  CHECK(group.size() == 1);
}

TEST_CASE("a prepared launch that was moved from refuses, and the one that it was moved to launches") {
  const Client client = each_client();
  const auto b = Buffer<u32>::from_host(client, std::vector<u32>(4, 7)).value();
  const LaunchArg args[] = {b.arg()};
  LaunchRequest request;
  request.variant = &add_one();
  request.args = args;
  request.config = {{1}, {32}};
  auto gone = PreparedLaunch::prepare(client.stream(), request).value();
  const auto go = std::move(gone);
  CHECK(rule_of(gone()) == "PreparedGone");
  CHECK(rule_of(gone.on(client.stream())) == "PreparedGone");
  CHECK(rule_of(gone.rebind(args)) == "PreparedGone");
  CHECK(thrown_rule([&] { (void)gone.stream(); }) == "PreparedGone");
  CHECK(thrown_rule([&] { (void)gone.config(); }) == "PreparedGone");
  REQUIRE(go().has_value());
  CHECK(b.read().value() == std::vector<u32>(4, 8));
  const Client elsewhere = Client::open(client.properties().kind == "cpu" ? "cpu:9" : "cpu").value();
  const auto refused = go.on(elsewhere.stream());
  CHECK(rule_of(refused) == "PreparedElsewhere");
  CHECK(refused.error().kernel() == "add_one");
}
