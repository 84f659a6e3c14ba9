// Host calls, events, flush and priorities of streams, on every device; and that no call can bring the streams to a stand.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <latch>
#include <memory>
#include <mutex>
#include <numeric>
#include <random>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "kiln/runtime/operation.h"
#include "runtime/add_one.h"
#include "runtime/fake_kernels.h"
#include "runtime/held.h"
#include "support/each_client.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace {

Buffer<u32> zeros(const Client& client, std::size_t n = 4) { return Buffer<u32>::from_host(client, std::vector<u32>(n)).value(); }
Result<void> add(const Stream& stream, const Buffer<u32>& y) {
  const LaunchArg args[] = {y.arg()};
  return launch(stream, {&add_one(), {{1}, {32}}, args});
}
std::string rule(const Result<void>& result) { return result.has_value() ? "" : result.error().rule(); }
template <class T>
std::string rule(const Result<T>& result) {
  return result.has_value() ? "" : result.error().rule();
}

}  // namespace

TEST_CASE("a host call is made when the work before it is over, and the work behind it starts after it returned") {
  const Client client = each_client();
  const Stream s = client.stream();
  const Buffer<u32> y = zeros(client);
  for (u32 round = 0; round < 20; ++round) {
    std::vector<u32> seen;
    REQUIRE(add(s, y).has_value());
    const Buffer<u32> now = zeros(client);
    REQUIRE(rt::copy(s, now.binding(), y.binding()).has_value());
    REQUIRE(s.call([&] { seen = now.read().value(); }).has_value());
    REQUIRE(add(s, y).has_value());
    REQUIRE(s.sync().has_value());
    CHECK(seen == std::vector<u32>(4, 2 * round + 1));
    CHECK(y.read(s).value() == std::vector<u32>(4, 2 * round + 2));
  }
}

TEST_CASE("calls of one stream are made in order, and calls of several streams meet") {
  const Client client = each_client();
  std::vector<int> order;
  const Stream s = client.stream();
  for (int i = 0; i < 100; ++i) REQUIRE(s.call([&order, i] { order.push_back(i); }).has_value());
  REQUIRE(s.sync().has_value());
  std::vector<int> wanted(100);
  std::iota(wanted.begin(), wanted.end(), 0);
  CHECK(order == wanted);
  std::barrier<> meeting(6);
  std::vector<Stream> streams;
  for (int i = 0; i < 6; ++i) streams.push_back(client.stream());
  for (const Stream& each : streams) REQUIRE(each.call([&] { meeting.arrive_and_wait(); }).has_value());
  for (const Stream& each : streams) REQUIRE(each.sync().has_value());
}

TEST_CASE("what a call throws is dropped, what it holds is gone when the stream is through, and a call without a function is refused") {
  const Client client = each_client();
  const Stream s = client.stream();
  const auto held = std::make_shared<int>(1);
  REQUIRE(s.call([held] { throw std::runtime_error("lost"); }).has_value());
  const Buffer<u32> y = zeros(client);
  REQUIRE(add(s, y).has_value());
  REQUIRE(s.sync().has_value());
  CHECK(held.use_count() == 1);
  CHECK(y.read(s).value() == std::vector<u32>(4, 1));
  CHECK(rule(s.call({})) == "NoFunction");
}

TEST_CASE("a call uses its client: it makes buffers, launches, copies, writes, reads and waits, on other streams and its own default one") {
  const Client client = each_client();
  const Stream s = client.stream(), other = client.stream();
  std::string failed;
  const auto must = [&](const Result<void>& r) {
    if (!r.has_value()) failed += r.error().text() + "\n";
  };
  Buffer<u32> y = zeros(client);
  REQUIRE(s.call([&] {
             Buffer<u32> x = zeros(client), z = zeros(client);
             must(add(other, x));
             must(add(client.default_stream(), x));
             must(rt::copy(other, z.binding(), x.binding()));
             must(other.sync());
             must(other.wait(client.default_stream().record()));
             must(client.sync(z));
             must(client.check(z));
             if (z.read(other).value() != std::vector<u32>(4, 2)) failed += "wrong value\n";
             must(y.write({5, 6, 7, 8}));
             must(add(s, y));  // behind the call, and that is no error
           }).has_value());
  REQUIRE(s.sync().has_value());
  CHECK(failed == "");
  CHECK(y.read().value() == std::vector<u32>{6, 7, 8, 9});
}

TEST_CASE("a call that would wait for its own end is refused, whatever way it waits, and nothing stands still") {
  const Client client = each_client();
  const Stream s = client.stream(), other = client.stream();
  Buffer<u32> y = zeros(client), z = zeros(client), free = zeros(client);
  std::vector<std::string> rules;
  std::latch enqueued(1);
  REQUIRE(s.call([&] {
             enqueued.wait();
             rules = {rule(s.sync()),     rule(client.sync()),     rule(y.read()),
                      rule(y.read(s)),    rule(client.sync(y)),    rule(other.sync()),
                      rule(z.read()),     rule(s.record().sync()), rule(other.record().sync()),
                      rule(free.read(s)), rule(free.read(other))};
             rules.push_back(rule(free.read()));  // nothing behind the call
             rules.push_back(rule(client.check(y)));
             rules.push_back(rule(s.flush()));
           }).has_value());
  REQUIRE(add(s, y).has_value());
  REQUIRE(rt::copy(other, z.binding(), y.binding()).has_value());
  enqueued.count_down();
  REQUIRE(s.sync().has_value());
  std::vector<std::string> wanted(11, "WaitsForItself");
  wanted.resize(14);
  CHECK(rules == wanted);
  CHECK(z.read().value() == std::vector<u32>(4, 1));
}

TEST_CASE("of calls that wait for each other one is refused, and both end") {
  const Client client = each_client();
  const Stream a = client.stream(), b = client.stream();
  const Buffer<u32> behind_a = zeros(client), behind_b = zeros(client);
  std::latch enqueued(1);
  std::string of_a, of_b;
  REQUIRE(a.call([&] {
             enqueued.wait();
             of_a = rule(behind_b.read());
           }).has_value());
  REQUIRE(b.call([&] {
             enqueued.wait();
             of_b = rule(behind_a.read());
           }).has_value());
  REQUIRE(add(a, behind_a).has_value());
  REQUIRE(add(b, behind_b).has_value());
  enqueued.count_down();
  REQUIRE(a.sync().has_value());
  REQUIRE(b.sync().has_value());
  CHECK((of_a == "WaitsForItself" || of_b == "WaitsForItself"));
  CHECK(of_a + of_b == "WaitsForItself");  // the other one was served
}

TEST_CASE("a call finds room though all that the device holds waits for it; what it enqueues behind itself has an end") {
  const Client client = each_client();
  const Stream s = client.stream(), other = client.stream();
  const Buffer<u32> y = zeros(client), x = zeros(client), z = zeros(client);
  std::latch full(1);
  u32 sum = 0, enqueued = 0;
  std::string refused;
  REQUIRE(s.call([&] {
             full.wait();
             for (int i = 0; i < 700; ++i)
               if (!add(other, x).has_value()) return;
             sum = x.read().value()[0];
             for (enqueued = 0; enqueued < 1000; ++enqueued) {
               if (const auto r = add(s, z); !r.has_value()) {
                 refused = r.error().rule();
                 break;
               }
             }
           }).has_value());
  const bool cpu = client.properties().kind == "cpu";
  for (int i = 0; i < (cpu ? 1000 : 500); ++i) REQUIRE(add(s, y).has_value());
  std::thread more([&] {
    for (int i = 0; i < 100; ++i) CHECK(add(s, y).has_value());
  });
  full.count_down();
  more.join();
  REQUIRE(s.sync().has_value());
  CHECK(sum == 700);
  CHECK(refused == "TooMuchBehindCall");
  CHECK(enqueued == rt::CallOrder::kRoom);
  CHECK(y.read().value()[0] == (cpu ? 1100 : 600));
}

TEST_CASE("a launch that is refused for what is behind its call names its kernel, and what it was to change is as it was") {
  const Client client = each_client();
  const Stream s = client.stream();
  const Buffer<u32> y = zeros(client);
  Result<void> refused;
  REQUIRE(s.call([&] {
             while (refused.has_value()) refused = add(s, y);
           }).has_value());
  REQUIRE(s.sync().has_value());
  CHECK(rule(refused) == "TooMuchBehindCall");
  CHECK(refused.error().kernel() == "add_one");
  CHECK(y.read().value() == std::vector<u32>(4, rt::CallOrder::kRoom));
}

TEST_CASE("an event orders streams that share no buffer; it is over when the work before it is") {
  const Client client = each_client();
  const Stream a = client.stream(), b = client.stream(), c = client.stream();
  CHECK(Event().done());
  CHECK(Event().sync().has_value());
  CHECK(b.wait(Event()).has_value());
  CHECK(client.stream().record().sync().has_value());
  std::atomic<int> step{0};
  int seen_b = -1, seen_c = -1;
  Held held(a);
  REQUIRE(a.call([&] { step = 1; }).has_value());
  const Event event = a.record();
  REQUIRE(b.wait(event).has_value());
  REQUIRE(b.call([&] { seen_b = step; }).has_value());
  REQUIRE(c.wait(event).has_value());
  const Event through_c = c.record();  // no work of its own, and behind the first all the same
  const Stream d = client.stream();
  REQUIRE(d.wait(through_c).has_value());
  REQUIRE(d.call([&] { seen_c = step; }).has_value());
  CHECK_FALSE(event.done());
  CHECK_FALSE(through_c.done());
  CHECK(seen_b == -1);
  held.open();
  REQUIRE(event.sync().has_value());
  CHECK(event.done());
  REQUIRE(b.sync().has_value());
  REQUIRE(d.sync().has_value());
  CHECK(seen_b == 1);
  CHECK(seen_c == 1);
  CHECK(through_c.done());
}

TEST_CASE("an event of another device is refused by a stream") {
  FakeServer one, two;
  const Stream a = one.client.stream(), b = two.client.stream();
  const auto refused = [&] {
    const Result<void> waited = b.wait(a.record());
    REQUIRE_FALSE(waited.has_value());
    CHECK(waited.error().code() == ErrorCode::ForeignHandle);
  };
  refused();  // whatever the stream has done
  REQUIRE(a.call([] {}).has_value());
  refused();
  const Event idle = one.client.stream().record();
  CHECK(idle.done());
  CHECK(idle.sync().has_value());
  CHECK(a.wait(idle).has_value());
  CHECK(b.wait(Event()).has_value());
}

TEST_CASE("flush waits for nothing, and neither it nor a stream's sync tells of a launch's failure; the bytes do") {
  const Client client = each_client();
  const Stream s = client.stream();
  const Buffer<u32> y = zeros(client);
  const Variant broken(ir::Kernel{}, Error(ErrorCode::CompileGeneric, "no such kernel"));
  {
    const Held held(s);
    REQUIRE(add(s, y).has_value());
    CHECK(s.flush().has_value());
  }
  static_cast<void>(launch(s, {&broken, for_num_elems(1), {}}));
  rt::claim(y.binding(), Error(ErrorCode::LaunchUnknown, "it failed"));
  CHECK(s.flush().has_value());
  CHECK(s.sync().has_value());
  CHECK(client.sync().has_value());
  CHECK_FALSE(client.sync(y).has_value());
  CHECK_FALSE(client.check(y).has_value());
  CHECK_FALSE(y.read(s).has_value());
  CHECK_FALSE(y.read(s).has_value());
}

TEST_CASE("check does not wait, sync of a buffer does, and waits for no other work") {
  const Client client = each_client();
  const Stream a = client.stream(), b = client.stream();
  const Buffer<u32> x = zeros(client), y = zeros(client);
  Held held(a);
  REQUIRE(add(a, x).has_value());
  REQUIRE(add(b, y).has_value());
  CHECK(client.check(x, y).has_value());
  CHECK(client.sync(y).has_value());
  CHECK(b.sync().has_value());
  held.open();
  CHECK(client.sync(x, y).has_value());
  CHECK(x.read().value() == y.read().value());
}

TEST_CASE("a device that is lost makes no calls: those that wait are dropped, and new ones are told") {
  FakeServer s;
  const Stream stream = s.client.stream();
  bool called = false;
  const auto held = std::make_shared<int>(1);
  {
    const Held gate(stream);
    REQUIRE(stream.call([&called, held] { called = true; }).has_value());
    s.local().device().trapped(Error(ErrorCode::Trapped, "a kernel came to a trap"));
  }
  const Result<void> after = stream.call([&] { called = true; });
  REQUIRE_FALSE(after.has_value());
  CHECK(after.error().is_device_poisoned());
  CHECK_FALSE(stream.sync().has_value());
  CHECK_FALSE(called);
  CHECK(held.use_count() == 1);
  CHECK_FALSE(stream.wait(stream.record()).has_value());
  CHECK_FALSE(stream.flush().has_value());
}

TEST_CASE("a GPU that is lost makes no calls: those that wait behind a call are dropped, new ones and their operations are told") {
  {
    const Client client = sim_client(kSimH200);
    const SimScript script(R"({"kernels": [{"n": 1, "fault": "illegal_address"}], "quiet": true})");
    const Stream stream = client.stream(), other = client.stream();
    const Buffer<u32> y = zeros(client), z = zeros(client);
    bool called = false;
    const auto held = std::make_shared<int>(1);
    {
      const Held gate(stream);
      REQUIRE(stream.call([&called, held] { called = true; }).has_value());
      REQUIRE(add(stream, y).has_value());  // the driver never gets it
      static_cast<void>(add(other, z));
      CHECK(other.sync().error().is_device_poisoned());
    }
    const Result<void> after = stream.call([&] { called = true; });
    REQUIRE_FALSE(after.has_value());
    CHECK(after.error().is_device_poisoned());
    const auto operation = op::call([&] { called = true; }).start(stream).sync();
    REQUIRE_FALSE(operation.has_value());
    CHECK(operation.error().is_device_poisoned());
    CHECK(stream.sync().error().is_device_poisoned());
    CHECK_FALSE(called);
    while (held.use_count() != 1) std::this_thread::yield();  // the thread that was to make it lets go of it
    CHECK_FALSE(stream.wait(stream.record()).has_value());
    CHECK_FALSE(stream.flush().has_value());
    CHECK(y.read().error().is_device_poisoned());
  }
  renew_sim();  // for those who make servers of their own
}

TEST_CASE("a server may go away within a call of its own, which holds the last of it") {
  for (const bool simulated : {false, true}) {
    CAPTURE(simulated);
    std::shared_ptr<Server> server =
        simulated ? make_sim_server() : rt::make_server(rt::make_cpu_device({.workers = 2, .arch = {}}).value(), nullptr);
    const std::weak_ptr<Server> watched = server;
    std::atomic<int> made{0};
    std::latch gone(1), done(2);
    {
      const Client client(std::move(server));
      const Stream s = client.stream();
      REQUIRE(s.call([&made, &gone, &done, client] {
                 gone.wait();
                 ++made;
                 done.count_down();
               }).has_value());
      REQUIRE(s.call([&made, &done] {  // in the same queue, when the server is on its way out
                 ++made;
                 done.count_down();
               })
                  .has_value());
    }
    gone.count_down();
    done.wait();
    while (!watched.expired()) std::this_thread::yield();
    CHECK(made.load() == 2);
  }
}

TEST_CASE("streams of high priority go first where threads are scarce, and none of low priority waits for ever") {
  static std::mutex mutex;
  static std::vector<u32> order;
  FakeServer s(1);
  s.compiler.define("fill", [](const void* params, const HostGrid*, std::uint64_t, std::uint64_t, void*) {
    const std::lock_guard lock(mutex);
    order.push_back(param<std::uint32_t>(params, 16));
  });
  order.clear();
  const Stream low = s.client.stream(StreamPriority::Low), normal = s.client.stream(), high = s.client.stream(StreamPriority::High);
  CHECK(low.priority() == StreamPriority::Low);
  CHECK(normal.priority() == StreamPriority::Normal);
  CHECK(high.priority() == StreamPriority::High);
  Buffer<u32> g = s.buffer({0}), x = s.buffer({0}), y = s.buffer({0}), z = s.buffer({0});
  Gate gate;
  REQUIRE(run(s.client.stream(), s.gated, g.arg(), scalar(0), scalar64(gate.address())).has_value());
  gate.await_entered();  // the one thread is busy
  for (int i = 0; i < 96; ++i) {
    REQUIRE(run(low, s.fill, x.arg(), scalar(0)).has_value());
    REQUIRE(run(normal, s.fill, y.arg(), scalar(1)).has_value());
    REQUIRE(run(high, s.fill, z.arg(), scalar(2)).has_value());
  }
  gate.open = true;
  REQUIRE(s.client.sync().has_value());
  REQUIRE(order.size() == 3 * 96);
  const std::vector<u32> first(order.begin(), order.begin() + 96);
  CHECK(std::count(first.begin(), first.end(), 2u) == 72);
  CHECK(std::count(first.begin(), first.end(), 1u) == 18);
  CHECK(std::count(first.begin(), first.end(), 0u) == 6);
}

TEST_CASE("streams of the three priorities share no queue, and streams made one after another do not either") {
  FakeServer s(1);
  std::set<std::uint32_t> queues;
  for (const StreamPriority p : {StreamPriority::Low, StreamPriority::Normal, StreamPriority::High}) {
    for (int i = 0; i < 4; ++i) queues.insert(rt::queue_of(s.client.stream(p).id()));
    CHECK(rt::priority_of(rt::queue_of(s.client.stream(p).id())) == p);
  }
  CHECK(queues.size() == 12);
}

// --- no deadlock under any interleaving --------------------------------------------------------------------------------------------

namespace {

// Sixteen threads over eight streams. Each adds to a buffer of its own, on whichever stream, and so knows what it must hold.
void stress(const Client& client, int rounds, unsigned seed) {
  const std::vector<Stream> streams = [&] {
    std::vector<Stream> all;
    for (int i = 0; i < 8; ++i) all.push_back(client.stream(static_cast<StreamPriority>(i % 3)));
    return all;
  }();
  const Buffer<u32> shared = zeros(client, 8);
  std::atomic<u32> shared_adds{0}, calls{0}, made{0};
  std::mutex told;  // threads tell one at a time
  const auto fine = [&told](const Result<void>& result) {
    if (result.has_value()) return;
    const std::lock_guard lock(told);
    CHECK_MESSAGE(result.has_value(), result.error().text());
  };
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 16; ++t) {
    threads.emplace_back([&, t] {
      std::mt19937 random(seed + t);
      Buffer<u32> mine = zeros(client, 8);
      u32 sum = 0;
      for (int round = 0; round < rounds; ++round) {
        const std::size_t at = random() % streams.size();
        const Stream &s = streams[at], &next = streams[(at + 1) % streams.size()];
        switch (random() % 9) {
          case 0:
          case 1:
            fine(add(s, mine));
            ++sum;
            break;
          case 2:
            fine(add(s, shared));
            ++shared_adds;
            break;
          case 3: {  // the old memory is dropped while it is used
            Buffer<u32> copy = Buffer<u32>::uninitialised(client, 8).value();
            fine(rt::copy(s, copy.binding(), mine.binding()));
            mine = copy;
            break;
          }
          case 4:
            ++calls;
            CHECK(s.call([&, at, t, keep = mine] {
                     ++made;
                     const Stream& third = streams[(at + t) % streams.size()];
                     switch (t % 4) {
                       case 0: static_cast<void>(third.sync()); break;  // may be refused, must not stand
                       case 1: static_cast<void>(keep.read()); break;
                       case 2: static_cast<void>(third.wait(streams[(at + 3) % 8].record())); break;
                       default: break;
                     }
                   }).has_value());
            break;
          case 5: fine(next.wait(s.record())); break;  // in a ring
          case 6:
            if (random() % 4 == 0) fine(s.sync());
            break;
          case 7: fine(s.record().sync()); break;
          default:
            if (random() % 4 == 0) CHECK(mine.read(s).value() == std::vector<u32>(8, sum));
            break;
        }
      }
      CHECK(mine.read().value() == std::vector<u32>(8, sum));
    });
  }
  for (std::thread& t : threads) t.join();
  fine(client.sync());
  CHECK(shared.read().value() == std::vector<u32>(8, shared_adds.load()));
  CHECK(made.load() == calls.load());
}

}  // namespace

TEST_CASE("sixteen threads over eight streams launch, copy, drop, call, wait in rings and read, and none stands still") {
  stress(each_client(), 120, 7);
}
