// Operations: lazy, composed, awaited, dropped, on every device.
#include "kiln/dsl/operation.h"

#include <doctest/doctest.h>

#include <atomic>
#include <barrier>
#include <latch>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <thread>
#include <vector>

#include "cpu/cpu_device.h"
#include "kiln/kiln.h"
#include "src/server.h"
#include "support/each_client.h"

using namespace kiln;
using test::each_client;

namespace {

KILN_KERNEL(op_scale, (In<u32> x, Out<u32> y, Val<u32> a))
{
  require(x.size() == y.size());
  auto i = global_id().x;
  If (i < y.size()) { y[i] = x[i] * a; }
}
KILN_KERNEL(op_increase, (InOut<u32> y, Val<u32> a))
{
  auto i = global_id().x;
  If (i < y.size()) { y[i] = y[i] + a; }
}
KILN_KERNEL(op_sum, (In<u32> x, In<u32> y, Out<u32> z))
{
  auto i = global_id().x;
  If (i < z.size()) { z[i] = x[i] + y[i]; }
}
KILN_KERNEL(op_stray, (InOut<u32> y, Val<u32> at))
{ y[at] = 1u; }

constexpr u32 kN = 64;
LaunchConfig config() { return {{2}, {kN / 2}}; }
Buffer<u32> filled(const Client& client, u32 value) { return Buffer<u32>::from_host(client, std::vector<u32>(kN, value)).value(); }
std::vector<u32> all(u32 value) { return std::vector<u32>(kN, value); }
template <class T>
std::string rule(const Result<T>& result) {
  return result.has_value() ? "" : result.error().rule();
}

// Holds a stream until it is opened.
class Held {
 public:
  explicit Held(const Stream& stream) {
    REQUIRE(stream.call([gate = gate_] { gate->wait(); }).has_value());
  }
  ~Held() { open(); }
  void open() {
    if (!std::exchange(opened_, true)) gate_->count_down();
  }

 private:
  std::shared_ptr<std::latch> gate_ = std::make_shared<std::latch>(1);
  bool opened_ = false;
};

// Waits for what other threads do.
template <class F>
void until(F&& f) {
  while (!f()) std::this_thread::yield();
}

}  // namespace

TEST_CASE("making an operation and dropping it runs nothing, and frees what it was given") {
  const Client client = each_client();
  Buffer<u32> y = filled(client, 1);
  std::weak_ptr<Allocation> owned;
  bool called = false;
  {
    Buffer<u32> mine = filled(client, 1);
    owned = mine.binding().memory;
    const auto borrowed = op::launch(op_increase, config(), y, 5);
    auto chain = op::launch_owned(op_increase, config(), std::move(mine), 5).and_then([&](Buffer<u32> b) {
      called = true;
      return op::read(std::move(b));
    });
    const auto call = op::call([&] { called = true; });
    mine = y;
    CHECK_FALSE(owned.expired());
  }
  CHECK(owned.expired());
  CHECK_FALSE(called);
  CHECK(y.read().value() == all(1));
}

TEST_CASE("an operation runs once; what was taken away is an error") {
  const Client client = each_client();
  const Buffer<u32> x = filled(client, 3);
  Buffer<u32> y = filled(client, 0);
  auto launch = op::launch(op_scale, config(), x, y, 7);
  CHECK(std::move(launch).sync().has_value());
  CHECK(y.read().value() == all(21));
  CHECK(rule(std::move(launch).sync()) == "OperationGone");
  CHECK(rule(std::move(launch).and_then([] { return op::nothing(); }).sync()) == "OperationGone");
  CHECK(op::value(5).map([](int v) { return v + 1; }).sync().value() == 6);
  CHECK(op::call([] { return std::string("called"); }).sync(client.stream()).value() == "called");
  CHECK(op::read(y).sync().value() == all(21));
  CHECK(op::write(y, all(9)).sync().has_value());
  CHECK(op::copy(y, x).sync().has_value());
  CHECK(y.read().value() == all(3));
}

TEST_CASE("what comes next sees what the part before it wrote, and no host waits in between") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Held held(stream);
  Running<std::vector<u32>> running =
      op::launch_owned(op_scale, config(), filled(client, 2), filled(client, 0), 10)
          .and_then([](Buffer<u32> x, Buffer<u32> y) { return op::launch_owned(op_sum, config(), std::move(x), y.view(kN), std::move(y)); })
          .and_then([](auto) { return op::nothing(); })
          .and_then([client] { return op::launch_owned(op_increase, config(), filled(client, 1), 4); })
          .and_then([](Buffer<u32> y) { return op::read(std::move(y)); })
          .start(stream);
  CHECK_FALSE(running.done());
  held.open();
  const auto result = std::move(running).sync();
  REQUIRE_FALSE(result.has_value());  // op_sum was given one buffer twice, to read and to write
  CHECK(result.error().rule() == "AliasingArguments");

  Held again(stream);
  auto good = op::launch_owned(op_scale, config(), filled(client, 2), filled(client, 0), 10)
                  .and_then([](Buffer<u32>, Buffer<u32> y) { return op::launch_owned(op_increase, config(), std::move(y), 4); })
                  .and_then([](Buffer<u32> y) { return op::read(std::move(y)); })
                  .map([](std::vector<u32> y) { return std::accumulate(y.begin(), y.end(), 0u); })
                  .start(stream);
  CHECK_FALSE(good.done());
  again.open();
  CHECK(std::move(good).sync().value() == 24 * kN);
}

TEST_CASE("a read has its place: what is written behind it is not seen") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> y = filled(client, 1);
  Held held(stream);
  REQUIRE(op_increase(stream, config(), y, 1).has_value());
  auto reading = op::read(y).start(stream);
  REQUIRE(op_increase(client.stream(), config(), y, 1).has_value());
  held.open();
  CHECK(std::move(reading).sync().value() == all(2));
  CHECK(y.read().value() == all(3));
  auto flags = Buffer<bool>::from_host(client, {true, false, true}).value();
  CHECK(op::read(flags).sync().value() == std::vector<bool>{true, false, true});
  CHECK(op::read(Buffer<u32>::zeroed(client, 0).value()).sync().value().empty());
}

TEST_CASE("a zip is sequential: it gives both values, and behind a failure nothing begins") {
  const Client client = each_client();
  std::vector<int> order;
  auto both = op::zip(op::call([&] { return order.push_back(1), 1; }), op::call([&] { order.push_back(2); }), op::value(3));
  const auto [one, nothing, three] = std::move(both).sync(client.stream()).value();
  CHECK(one == 1);
  CHECK(three == 3);
  CHECK(order == std::vector<int>{1, 2});
  bool begun = false;
  Buffer<u32> y = filled(client, 0);
  const Buffer<u32> wrong = Buffer<u32>::zeroed(client, 3).value();
  const auto failed = op::zip(op::launch(op_scale, config(), wrong, y, 2), op::call([&] { begun = true; })).sync(client.stream());
  CHECK(rule(failed) == "SizeRequirementViolated");
  CHECK_FALSE(begun);
}

TEST_CASE("what runs beside others runs on streams of its own, behind what was before and before what comes next") {
  const Client client = each_client();
  std::barrier<> meeting(3);
  const auto meet = [&] { meeting.arrive_and_wait(); };
  CHECK(op::when_all(op::call(meet), op::call(meet), op::call(meet)).sync(client.stream()).has_value());
  CHECK(op::when_all(op::call(meet), op::call(meet), op::call(meet)).sync(StreamPolicy::round_robin(client, 4)).has_value());

  // The joint is made of events: all is enqueued while the stream stands still.
  const Stream stream = client.stream();
  Buffer<u32> a = filled(client, 1), b = filled(client, 2), c = filled(client, 0), d = filled(client, 0), e = filled(client, 0);
  Held held(stream);
  REQUIRE(op_increase(stream, config(), a, 1).has_value());
  auto running = op::when_all(op::launch(op_scale, config(), a, c, 10), op::launch(op_scale, config(), b, d, 100))
                     .and_then([&](auto, auto) { return op::launch(op_sum, config(), c, d, e); })
                     .start(stream);
  auto reading = op::read(e).start(stream);
  CHECK_FALSE(running.done());
  held.open();
  CHECK(std::move(running).sync().has_value());
  CHECK(std::move(reading).sync().value() == all(220));

  // Of the failures the first in order is told, and the others run all the same.
  Buffer<u32> f = filled(client, 0);
  const Buffer<u32> wrong = Buffer<u32>::zeroed(client, 3).value();
  const auto failed = op::when_all(op::launch(op_increase, config(), f, 5), op::launch(op_scale, config(), wrong, c, 2),
                                   op::call([]() -> int { throw std::runtime_error("late"); }))
                          .sync(stream);
  CHECK(rule(failed) == "SizeRequirementViolated");
  CHECK(f.read().value() == all(5));
}

TEST_CASE("operations in turn run on stream k modulo their number, and have no order among each other") {
  const Client client = each_client();
  const StreamPolicy policy = StreamPolicy::round_robin(client), same = policy;
  std::vector<Stream> streams;
  for (int k = 0; k < 8; ++k) streams.push_back((k % 2 == 0 ? policy : same).next());
  for (std::size_t k = 0; k < 8; ++k)
    for (std::size_t l = 0; l < 8; ++l) CHECK((streams[k] == streams[l]) == (k % 4 == l % 4));
  std::latch later(1);
  auto first = op::call([&] { later.wait(); }).start(policy);
  CHECK(op::call([&] { later.count_down(); }).sync(policy).has_value());  // beside the first
  CHECK(std::move(first).sync().has_value());
  const Stream one = client.stream();
  CHECK(StreamPolicy::single(one).next() == one);
  CHECK_THROWS_AS(StreamPolicy::round_robin(client, 0), Exception);
}

TEST_CASE("a shared source runs once, whoever begins") {
  const Client client = each_client();
  std::atomic<int> ran{0};
  const op::Shared<int> source = op::share(op::call([&] { return ++ran; }));
  CHECK(ran == 0);
  auto pair = op::when_all(source.get(), source.get().map([](const std::shared_ptr<const int>& v) { return *v * 10; }));
  const auto [one, ten] = std::move(pair).sync(client.stream()).value();
  CHECK(*one == 1);
  CHECK(ten == 10);
  CHECK(*source.get().sync(client.stream()).value() == 1);
  CHECK(ran == 1);

  std::atomic<int> unzipped{0};
  {
    auto [number, twice] = op::unzip(op::call([&] {
      const int n = ++unzipped;
      return std::tuple(n, 2 * n);
    }));
    CHECK(unzipped == 0);
    CHECK(std::move(twice).sync(client.stream()).value() == 2);
    CHECK(std::move(number).sync(client.stream()).value() == 1);
    auto [dropped, kept] = op::unzip(op::call([&] { return std::tuple(++unzipped, 7); }));
    { const auto gone = std::move(dropped); }
    CHECK(unzipped == 1);
    CHECK(std::move(kept).sync(client.stream()).value() == 7);
  }
  CHECK(unzipped == 2);

  const Stream s = client.stream(), t = client.stream();
  Held held(s);
  auto [x, y] = op::unzip(op::launch_owned(op_scale, config(), filled(client, 4), filled(client, 0), 2));
  auto first = std::move(x).and_then([](Buffer<u32> b) { return op::read(std::move(b)); }).start(s);
  auto second = std::move(y).and_then([](Buffer<u32> b) { return op::read(std::move(b)); }).start(t);  // behind the source by an event
  held.open();
  CHECK(std::move(second).sync().value() == all(8));
  CHECK(std::move(first).sync().value() == all(4));

  // Whoever began it may be dropped.
  std::latch gate(1);
  const op::Shared<int> slow = op::share(op::call([&] { return gate.wait(), 7; }));
  { auto dropped = slow.get().start(client.stream()); }
  gate.count_down();
  CHECK(*slow.get().sync(client.stream()).value() == 7);
}

TEST_CASE("dropping what runs does not wait, lets the device come to its end with all that it uses, and begins nothing further") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> y = filled(client, 1);
  std::weak_ptr<Allocation> owned;
  std::atomic<bool> went_on{false};
  Held held(stream);
  {
    Buffer<u32> mine = filled(client, 5);
    owned = mine.binding().memory;
    auto running = op::launch_owned(op_scale, config(), std::move(mine), Buffer<u32>(y), 3)
                       .and_then([](Buffer<u32> x, Buffer<u32>) { return op::read(std::move(x)); })
                       .map([&](std::vector<u32>) {
                         went_on = true;
                         return 0;
                       })
                       .start(stream);
    mine = y;
    CHECK_FALSE(running.done());
  }
  CHECK_FALSE(owned.expired());
  held.open();
  REQUIRE(stream.sync().has_value());
  CHECK(y.read().value() == all(15));
  until([&] { return owned.expired(); });
  CHECK_FALSE(went_on);
}

TEST_CASE("a buffer that was lent and is gone is an error, and nothing runs") {
  const Client client = each_client();
  Buffer<u32> y = filled(client, 1);
  auto x = std::make_unique<Buffer<u32>>(filled(client, 3));
  auto lent = op::launch(op_scale, config(), *x, y, 2);
  auto read = op::read(*x);
  auto copy = op::copy(*x, y);
  auto write = op::write(*x, all(1));
  x.reset();
  const auto result = std::move(lent).sync();
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().rule() == "BorrowedBufferGone");
  CHECK(result.error().text().find("argument 1") != std::string::npos);
  CHECK_FALSE(y.read().has_value());  // it was to be written whole
  CHECK(rule(std::move(read).sync()) == "BorrowedBufferGone");
  CHECK(rule(std::move(copy).sync()) == "BorrowedBufferGone");
  CHECK(rule(std::move(write).sync()) == "BorrowedBufferGone");
  REQUIRE(y.write(all(2)).has_value());
  auto empty = Buffer<u32>::zeroed(client, 0).value();
  CHECK(op::launch(op_increase, config(), empty, 1).sync().has_value());
}

TEST_CASE("a launch that fails late fails its operation, and its bytes") {
  const Client client = each_client();
  Buffer<u32> y = filled(client, 1), z = filled(client, 1);
  const auto result = op::zip(op::launch(op_stray, config(), y, kN + 3), op::launch(op_increase, config(), z, 1)).sync();
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().root().code() == ErrorCode::Bounds);
  CHECK_FALSE(y.read().has_value());
  CHECK(z.read().value() == all(2));
  const Stream stream = client.stream();
  Held held(stream);
  auto good = op::write(y, all(4)).and_then([&] { return op::launch(op_increase, config(), y, 1); }).start(stream);
  REQUIRE(op_stray(stream, config(), y, kN + 1).has_value());  // behind it, and no business of its
  held.open();
  CHECK(std::move(good).sync().has_value());
}

TEST_CASE("what a function of an operation throws is the operation's error") {
  const Client client = each_client();
  const Stream s = client.stream();
  CHECK(rule(op::call([] { throw std::runtime_error("no"); }).sync(s)) == "OperationThrew");
  CHECK(rule(op::value(1).map([](int) -> int { throw 5; }).sync(s)) == "OperationThrew");
  CHECK(rule(op::value(1).and_then([](int) -> Operation<int> { throw std::runtime_error("no"); }).sync(s)) == "OperationThrew");
  const auto own = op::call([]() -> int { throw Exception(Error(ErrorCode::NotFound, "mine")); }).sync(s);
  REQUIRE_FALSE(own.has_value());
  CHECK(own.error().code() == ErrorCode::NotFound);
}

TEST_CASE("an operation on a stream of another device is refused as its parts are") {
  const Client client = each_client();
  const Client other(rt::make_server(rt::make_cpu_device({.workers = 2, .arch = {}}).value(), nullptr));
  Buffer<u32> y = filled(client, 1);
  const auto result = op::launch(op_increase, config(), y, 1).sync(other.stream());
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code() == ErrorCode::ForeignHandle);
  CHECK(op::read(y).sync(other.stream()).error().code() == ErrorCode::ForeignHandle);
  CHECK(y.read().value() == all(1));
}

TEST_CASE("in a host call an operation that would wait for the call's end is refused, others run") {
  const Client client = each_client();
  const Stream stream = client.stream();
  std::string behind = "not made", beside;
  Buffer<u32> y = filled(client, 1);
  REQUIRE(stream
              .call([&] {
                behind = rule(op::call([] {}).sync(stream));
                beside = rule(op::launch(op_increase, config(), y, 1).sync());
              })
              .has_value());
  REQUIRE(stream.sync().has_value());
  CHECK(behind == "WaitsForItself");
  CHECK(beside == "");
  CHECK(y.read().value() == all(2));
}

// --- coroutines --------------------------------------------------------------------------------------------------------------

namespace {

Operation<u32> total(Buffer<u32> x, u32 times) {
  for (u32 i = 0; i < times; ++i) (co_await op::launch(op_increase, config(), x, 1)).value();
  const Result<std::vector<u32>> host = co_await op::read(x);
  if (!host.has_value()) co_return host.error();
  co_return std::accumulate(host->begin(), host->end(), 0u);
}
Operation<void> fails(Buffer<u32> x) {
  const Buffer<u32> wrong = Buffer<u32>::zeroed(x.client(), 3).value();
  (co_await op::launch(op_scale, config(), wrong, x, 2)).value();  // throws
}

// A coroutine of somebody else's, which begins at once.
struct Eager {
  struct promise_type {
    Eager get_return_object() { return {}; }
    std::suspend_never initial_suspend() noexcept { return {}; }
    std::suspend_never final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { std::terminate(); }
  };
};
Eager await_into(Running<u32> operation, std::atomic<u32>& result, std::atomic<bool>& elsewhere) {
  const auto before = std::this_thread::get_id();
  const Result<u32> value = co_await std::move(operation);
  elsewhere = std::this_thread::get_id() != before;
  result = value.value();
}

}  // namespace

TEST_CASE("a coroutine is an operation: it begins when it runs, awaits the device, and its errors are results") {
  const Client client = each_client();
  CHECK(total(filled(client, 1), 5).sync(client.stream()).value() == 6 * kN);
  CHECK(rule(fails(filled(client, 1)).sync(client.stream())) == "SizeRequirementViolated");
  auto two = op::when_all(total(filled(client, 1), 2), total(filled(client, 2), 3)).sync(StreamPolicy::round_robin(client));
  CHECK(two.value() == std::tuple<u32, u32>(3 * kN, 5 * kN));
  { const auto never = total(filled(client, 1), 1); }
  std::atomic<u32> result{0};
  std::atomic<bool> elsewhere{false};
  const Stream stream = client.stream();
  Held held(stream);
  await_into(total(filled(client, 1), 1).start(stream), result, elsewhere);
  CHECK(result == 0);
  held.open();
  until([&] { return result != 0; });
  CHECK(result == 2 * kN);
  CHECK(elsewhere);
}

TEST_CASE("a coroutine that is dropped while it waits is not resumed, and its frame goes") {
  const Client client = each_client();
  const Stream stream = client.stream();
  const auto token = std::make_shared<int>(0);
  std::atomic<bool> resumed{false};
  Held held(stream);
  {
    const auto body = [](Buffer<u32> x, std::shared_ptr<int> kept, std::atomic<bool>& went) -> Operation<void> {
      (void)co_await op::launch(op_increase, config(), x, 1);
      went = true;
      (void)kept;
    };
    auto running = body(filled(client, 1), token, resumed).start(stream);
    CHECK(token.use_count() == 2);
  }
  held.open();
  until([&] { return token.use_count() == 1; });
  CHECK_FALSE(resumed);
}

TEST_CASE("many operations of many threads at a time") {
  const Client client = each_client();
  const StreamPolicy policy = StreamPolicy::round_robin(client, 6);
  std::vector<std::thread> threads;
  for (u32 t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      std::vector<Running<u32>> running;
      for (u32 i = 0; i < 8; ++i) running.push_back(total(filled(client, t), i % 3).start(policy));
      for (u32 i = 0; i < 8; ++i) {
        if (i % 4 == 3) continue;  // dropped
        CHECK(std::move(running[i]).sync().value() == (t + i % 3) * kN);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(client.sync().has_value());
}
