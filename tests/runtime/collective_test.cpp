// Collectives between CPU devices of one process, and the transport that has nothing.
#include "kiln/runtime/collective.h"

#include <doctest/doctest.h>

#include <atomic>
#include <bit>
#include <numeric>
#include <random>
#include <thread>

#include "cpu/cpu_device.h"
#include "kiln/runtime/graph.h"
#include "runtime/fake_kernels.h"
#include "runtime/refusals.h"
#include "src/collective/host_transport.h"
#include "src/local_server.h"
#include "support/sim.h"

using namespace kiln;
using test::rule_of;

namespace {

std::vector<u32> numbers(std::size_t n, u32 first = 0) {
  std::vector<u32> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}
std::vector<Client> cpus(unsigned n) {
  std::vector<Client> all;
  for (unsigned i = 0; i < n; ++i) all.emplace_back(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}, .number = i}).value()));
  return all;
}
template <class T>
std::vector<Buffer<T>> buffers(const std::vector<Client>& clients, const std::vector<std::vector<T>>& host) {
  std::vector<Buffer<T>> all;
  for (std::size_t i = 0; i < clients.size(); ++i) all.push_back(Buffer<T>::from_host(clients[i], host[i]).value());
  return all;
}
std::vector<Buffer<u32>> filled(const std::vector<Client>& clients, std::size_t n, u32 step = 1000) {
  std::vector<std::vector<u32>> host;
  for (u32 r = 0; r < clients.size(); ++r) host.push_back(numbers(n, r * step));
  return buffers<u32>(clients, host);
}
template <class T = u32>
std::vector<Buffer<T>> empty_ones(const std::vector<Client>& clients, std::size_t n) {
  return buffers<T>(clients, std::vector<std::vector<T>>(clients.size(), std::vector<T>(n)));
}
Error some_failure() { return Error(ErrorCode::Generic, "it was not to be"); }

}  // namespace

TEST_CASE("a transport that has nothing refuses every operation by its name, and touches no buffer") {
  struct Nothing final : rt::Transport {
    Result<void> comm_init(const std::vector<Client>&) override { return {}; }
  };
  const std::vector<Client> clients = cpus(2);
  const Communicator group = Communicator::over(std::make_shared<Nothing>(), clients).value();
  auto from = Buffer<u32>::from_host(clients[0], numbers(4)).value(), to = Buffer<u32>::from_host(clients[0], numbers(4, 9)).value();
  auto twice = Buffer<u32>::from_host(clients[0], numbers(8, 9)).value(), half = Buffer<u32>::from_host(clients[0], numbers(2, 9)).value();
  const std::pair<const char*, Result<void>> all[] = {
      {"all_reduce", group.all_reduce(from, to, Reduction::Sum)},
      {"all_gather", group.all_gather(from, twice)},
      {"reduce_scatter", group.reduce_scatter(from, half, Reduction::Mean)},
      {"broadcast", group.broadcast(to, 1)},
      {"all_to_all", group.all_to_all(from, to)},
      {"send", group.send(from, 1)},
      {"recv", group.recv(to, 1)},
      {"barrier", group.barrier(clients[0])},
      {"sync", group.sync(clients[0])},
      {"comm_init", rt::Transport().comm_init(clients)},
  };
  for (const auto& [name, result] : all) {
    CAPTURE(name);
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code() == ErrorCode::NoDeviceTransport);
    CHECK_FALSE(result.error().is_refusal());
    CHECK(result.error().text().find(name) != std::string::npos);
  }
  CHECK(to.read().value() == numbers(4, 9));
  CHECK(twice.read().value() == numbers(8, 9));
  CHECK(half.read().value() == numbers(2, 9));
  const Client gpu = test::sim_client(test::kSimH200);
  const auto none = Communicator::init({clients[0], gpu});
  REQUIRE_FALSE(none.has_value());
  CHECK(none.error().code() == ErrorCode::NoDeviceTransport);
}

TEST_CASE("a group is one of its devices; its id is of the set, and never that of what two of them send") {
  const std::vector<Client> c = cpus(3);
  const Communicator group = Communicator::init(c).value();
  CHECK(group.size() == 3);
  CHECK(group.rank(c[1]).value() == 1);
  CHECK(rule_of(group.rank(cpus(1)[0])) == "ForeignHandle");
  CHECK(Communicator::init(c).value().id() == group.id());
  CHECK(rule_of(Communicator::init({c[1], c[0], c[2]})) == "CommunicatorOrder");
  CHECK(Communicator::over(std::make_shared<rt::HostTransport>(), {c[2], c[1], c[0]}).value().id() == group.id());
  const Communicator two = Communicator::init({c[0], c[1]}).value();
  CHECK(two.id() != group.id());
  CHECK(group.channel_id(0, 1) == group.channel_id(1, 0));
  CHECK(group.channel_id(0, 1) != group.channel_id(0, 2));
  CHECK(group.channel_id(0, 1) != two.id());
  CHECK(rule_of(Communicator::init({})) == "CommunicatorDevices");
  CHECK(rule_of(Communicator::init({c[0], c[0]})) == "CommunicatorDevices");
}

TEST_CASE("one thread calls for all devices, and the last call does the work") {
  for (const unsigned n : {1u, 2u, 3u}) {
    CAPTURE(n);
    const std::vector<Client> c = cpus(n);
    const Communicator group = Communicator::init(c).value();
    {
      auto from = filled(c, 5), to = empty_ones(c, 5);
      for (unsigned r = 0; r < n; ++r) REQUIRE(group.all_reduce(from[r], to[r], Reduction::Sum).has_value());
      std::vector<u32> sum(5);
      for (u32 i = 0; i < 5; ++i)
        for (u32 r = 0; r < n; ++r) sum[i] += r * 1000 + i;
      for (unsigned r = 0; r < n; ++r) CHECK(to[r].read().value() == sum);
      for (unsigned r = 0; r < n; ++r) REQUIRE(group.all_reduce(from[r], from[r], Reduction::Sum).has_value());  // in place
      for (unsigned r = 0; r < n; ++r) CHECK(from[r].read().value() == sum);
    }
    {
      auto from = filled(c, 3), to = empty_ones(c, 3 * n);
      for (unsigned r = 0; r < n; ++r) REQUIRE(group.all_gather(from[r], to[r]).has_value());
      std::vector<u32> all;
      for (u32 r = 0; r < n; ++r)
        for (u32 i = 0; i < 3; ++i) all.push_back(r * 1000 + i);
      for (unsigned r = 0; r < n; ++r) CHECK(to[r].read().value() == all);
    }
    {
      auto from = filled(c, 4 * n), to = empty_ones(c, 4);
      for (unsigned r = 0; r < n; ++r) REQUIRE(group.reduce_scatter(from[r], to[r], Reduction::Sum).has_value());
      for (u32 r = 0; r < n; ++r) {
        std::vector<u32> part(4);
        for (u32 i = 0; i < 4; ++i)
          for (u32 s = 0; s < n; ++s) part[i] += s * 1000 + r * 4 + i;
        CHECK(to[r].read().value() == part);
      }
    }
    {
      auto all = filled(c, 6);
      for (unsigned r = 0; r < n; ++r) REQUIRE(group.broadcast(all[r], n - 1).has_value());
      for (unsigned r = 0; r < n; ++r) CHECK(all[r].read().value() == numbers(6, (n - 1) * 1000));
    }
    {
      auto from = filled(c, 2 * n), to = empty_ones(c, 2 * n);
      for (unsigned r = 0; r < n; ++r) REQUIRE(group.all_to_all(from[r], to[r]).has_value());
      for (u32 r = 0; r < n; ++r) {
        std::vector<u32> parts;
        for (u32 s = 0; s < n; ++s)
          for (u32 i = 0; i < 2; ++i) parts.push_back(s * 1000 + r * 2 + i);
        CHECK(to[r].read().value() == parts);
      }
    }
    for (unsigned r = 0; r < n; ++r) REQUIRE(group.barrier(c[r]).has_value());
    for (unsigned r = 0; r < n; ++r) CHECK(group.sync(c[r]).has_value());
  }
}

TEST_CASE("what is sent is received in order, whichever is called first, and is what it was when it was sent") {
  const std::vector<Client> c = cpus(2);
  const Communicator group = Communicator::init(c).value();
  auto x = Buffer<u32>::from_host(c[0], numbers(5)).value();
  auto a = Buffer<u32>::zeroed(c[1], 5).value(), b = Buffer<u32>::zeroed(c[1], 5).value(), d = Buffer<u32>::zeroed(c[1], 5).value();
  REQUIRE(group.send(x, 1).has_value());
  REQUIRE(x.write(numbers(5, 10)).has_value());
  REQUIRE(group.send(x, 1).has_value());
  REQUIRE(x.write(numbers(5, 20)).has_value());
  REQUIRE(group.recv(a, 0).has_value());
  REQUIRE(group.recv(b, 0).has_value());
  REQUIRE(group.recv(d, 0).has_value());
  CHECK(a.read().value() == numbers(5));
  CHECK(b.read().value() == numbers(5, 10));
  const auto pending = d.read();
  REQUIRE_FALSE(pending.has_value());
  CHECK(pending.error().root().rule() == "CollectivePending");
  REQUIRE(group.send(x, 1).has_value());
  CHECK(d.read().value() == numbers(5, 20));
  auto self = Buffer<u32>::zeroed(c[0], 5).value();
  REQUIRE(group.send(x, 0).has_value());
  REQUIRE(group.recv(self, 0).has_value());
  CHECK(self.read().value() == numbers(5, 20));
  CHECK(group.sync(c[0]).has_value());
}

TEST_CASE("threads that call each for its device meet at sync, round after round") {
  constexpr unsigned kDevices = 3;
  const std::vector<Client> c = cpus(kDevices);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (u32 r = 0; r < kDevices; ++r) {
    threads.emplace_back([&, r] {
      const Communicator group = Communicator::init(c).value();
      auto x = Buffer<u32>::zeroed(c[r], 100).value();
      auto all = Buffer<u32>::zeroed(c[r], 100 * kDevices).value();
      for (u32 round = 0; round < 20; ++round) {
        if (!x.write(numbers(100, round + r)).has_value()) ++wrong;
        if (!group.all_reduce(x, x, Reduction::Sum).has_value()) ++wrong;
        if (!group.sync(c[r]).has_value()) ++wrong;  // else the result would be no source yet
        if (!group.all_gather(x, all).has_value()) ++wrong;
        if (!group.sync(c[r]).has_value()) ++wrong;
        std::vector<u32> sum;
        for (u32 i = 0; i < 100; ++i) sum.push_back(3 * (round + i) + 3);
        const auto got = all.read();
        if (!got.has_value()) ++wrong;
        for (u32 s = 0; s < kDevices && got.has_value(); ++s)
          if (!std::equal(sum.begin(), sum.end(), got->begin() + s * 100)) ++wrong;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  CHECK(wrong == 0);
}

TEST_CASE("sums and means of every type are rounded as the type says, in the order of the group, and wrap") {
  const std::vector<Client> c = cpus(3);
  const Communicator group = Communicator::init(c).value();
  const auto reduce = [&]<class T>(Reduction reduction, std::vector<T> values) {
    auto x = buffers<T>(c, {{values[0]}, {values[1]}, {values[2]}});
    for (unsigned r = 0; r < 3; ++r) REQUIRE(group.all_reduce(x[r], x[r], reduction).has_value());
    CHECK(x[1].read().value() == x[0].read().value());
    return x[2].read().value()[0];
  };
  using enum Reduction;
  CHECK(reduce(Sum, std::vector<u8>{200, 100, 1}) == 45);
  CHECK(reduce(Mean, std::vector<u8>{200, 100, 3}) == 101);
  CHECK(reduce(Sum, std::vector<i8>{100, 100, 0}) == -56);
  CHECK(reduce(Mean, std::vector<i8>{-100, -100, -2}) == -67);  // toward zero
  CHECK(reduce(Sum, std::vector<i16>{32767, 1, 0}) == -32768);
  CHECK(reduce(Sum, std::vector<u16>{65535, 2, 0}) == 1);
  CHECK(reduce(Sum, std::vector<i32>{std::numeric_limits<i32>::max(), 1, 0}) == std::numeric_limits<i32>::min());
  CHECK(reduce(Mean, std::vector<i64>{std::numeric_limits<i64>::max(), std::numeric_limits<i64>::max(), std::numeric_limits<i64>::max()}) ==
        std::numeric_limits<i64>::max());
  CHECK(reduce(Mean, std::vector<u64>{~u64{0}, ~u64{0}, ~u64{0}}) == ~u64{0});
  CHECK(reduce(Sum, std::vector<f32>{1e8f, 1.0f, -1e8f}) == 0.0f);  // in order: the 1 is lost
  CHECK(reduce(Sum, std::vector<f32>{1e8f, -1e8f, 1.0f}) == 1.0f);
  CHECK(reduce(Mean, std::vector<f64>{1, 2, 4}) == 7.0 / 3.0);
  CHECK(reduce(Sum, std::vector<f16>{f16(2048), f16(1), f16(1)}) == f16(2048));  // 2049 is rounded to even, twice
  CHECK(reduce(Sum, std::vector<f16>{f16(1), f16(1), f16(2048)}) == f16(2050));
  CHECK(reduce(Sum, std::vector<bf16>{bf16(256), bf16(1), bf16(1)}) == bf16(256));
  CHECK(reduce(Mean, std::vector<bf16>{bf16(1), bf16(1), bf16(2)}) == bf16(4.0 / 3.0));
  // Every sum of two halves is the exact one, rounded once.
  std::mt19937 random(3);
  for (int i = 0; i < 20000; ++i) {
    const auto a = f16::from_bits(static_cast<std::uint16_t>(random())), b = f16::from_bits(static_cast<std::uint16_t>(random()));
    f16 sum;
    rt::reduce(ir::Type::F16, Sum, {reinterpret_cast<const std::byte*>(&a), reinterpret_cast<const std::byte*>(&b)},
               reinterpret_cast<std::byte*>(&sum), 1);
    const f16 exact(static_cast<double>(static_cast<float>(a)) + static_cast<double>(static_cast<float>(b)));
    if (!(sum == exact) && !(sum != sum && exact != exact)) FAIL_CHECK(a.bits() << " + " << b.bits());
  }
  auto flag = Buffer<bool>::zeroed(c[0], 1).value();
  CHECK(rule_of(group.all_reduce(flag, flag, Sum)) == "UnsupportedReduction");
}

TEST_CASE("a collective of more than is on the host at a time is whole") {
  const std::vector<Client> c = cpus(2);
  const Communicator group = Communicator::init(c).value();
  auto x = filled(c, 700'001);
  for (unsigned r = 0; r < 2; ++r) REQUIRE(group.all_reduce(x[r], x[r], Reduction::Sum).has_value());
  const auto got = x[1].read().value();
  for (u32 i = 0; i < got.size(); ++i)
    if (got[i] != 2 * i + 1000) FAIL(i);
}

TEST_CASE("sizes must be exact, and who is refused fails the group before anybody waits for it") {
  struct Case {
    const char* rule;
    Result<void> (*call)(const Communicator&, Buffer<u32>&, Buffer<u32>&);
  };
  const Case cases[] = {
      {"CollectiveSize",
       [](const Communicator& g, Buffer<u32>& x, Buffer<u32>& y) {
         auto part = y.slice(0, 5);
         return g.all_reduce(x, part, Reduction::Sum);
       }},
      {"CollectiveSize", [](const Communicator& g, Buffer<u32>& x, Buffer<u32>& y) { return g.all_gather(x, y); }},
      {"CollectiveSize", [](const Communicator& g, Buffer<u32>& x, Buffer<u32>& y) { return g.reduce_scatter(x, y, Reduction::Sum); }},
      {"CollectiveSize",
       [](const Communicator& g, Buffer<u32>& x, Buffer<u32>& y) {
         auto part = y.slice(0, 5);
         return g.all_to_all(x.slice(0, 5), part);
       }},
      {"CollectiveRank", [](const Communicator& g, Buffer<u32>& x, Buffer<u32>&) { return g.broadcast(x, 2); }},
      {"CollectiveRank", [](const Communicator& g, Buffer<u32>& x, Buffer<u32>&) { return g.send(x, 2); }},
      {"AliasingArguments",
       [](const Communicator& g, Buffer<u32>& x, Buffer<u32>&) {
         auto shifted = x.slice(1, 5);
         return g.all_reduce(x.slice(0, 5), shifted, Reduction::Sum);
       }},
  };
  for (const Case& wrong : cases) {
    const std::vector<Client> c = cpus(2);
    const Communicator group = Communicator::init(c).value();
    auto x = filled(c, 6), y = empty_ones(c, 6);
    REQUIRE(group.all_reduce(x[1], y[1], Reduction::Sum).has_value());
    std::thread waiting([&] { CHECK_FALSE(group.sync(c[1]).has_value()); });
    CHECK(rule_of(wrong.call(group, x[0], y[0])) == wrong.rule);
    waiting.join();
    const auto read = y[1].read();
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().root().rule() == wrong.rule);
    CHECK(x[1].read().value() == numbers(6, 1000));
    CHECK(rule_of(group.all_reduce(x[1], y[1], Reduction::Sum)) == "CommunicatorFailed");
    CHECK(rule_of(group.barrier(c[0])) == "CommunicatorFailed");
    // Made anew it works.
    const Communicator anew = Communicator::init(c).value();
    auto z = filled(c, 6);
    for (unsigned r = 0; r < 2; ++r) REQUIRE(anew.all_reduce(z[r], y[r], Reduction::Sum).has_value());
    CHECK(y[1].read().value()[0] == 1000);
  }
}

TEST_CASE("devices that call different things are told so, all of them") {
  struct Case {
    const char* what;
    Result<void> (*first)(const Communicator&, Buffer<u32>&);
    Result<void> (*second)(const Communicator&, Buffer<u32>&);
  };
  const auto sum = [](const Communicator& g, Buffer<u32>& x) { return g.all_reduce(x, x, Reduction::Sum); };
  const Case cases[] = {
      {"all_to_all where", sum, [](const Communicator& g, Buffer<u32>& x) { return g.all_to_all(x, x); }},
      {"a sum and one a mean", sum, [](const Communicator& g, Buffer<u32>& x) { return g.all_reduce(x, x, Reduction::Mean); }},
      {"5 and 6 elements", sum,
       [](const Communicator& g, Buffer<u32>& x) {
         auto part = x.slice(0, 5);
         return g.all_reduce(part, part, Reduction::Sum);
       }},
      {"other types", sum,
       [](const Communicator& g, Buffer<u32>& x) {
         auto other = Buffer<i32>::over(x.client(), x.binding().memory, {6}).value();
         return g.all_reduce(other, other, Reduction::Sum);
       }},
      {"other roots", [](const Communicator& g, Buffer<u32>& x) { return g.broadcast(x, 0); },
       [](const Communicator& g, Buffer<u32>& x) { return g.broadcast(x, 1); }},
      {"receives 5", [](const Communicator& g, Buffer<u32>& x) { return g.send(x, 1); },
       [](const Communicator& g, Buffer<u32>& x) {
         auto part = x.slice(0, 5);
         return g.recv(part, 0);
       }},
  };
  for (const Case& one : cases) {
    CAPTURE(one.what);
    const std::vector<Client> c = cpus(2);
    const Communicator group = Communicator::init(c).value();
    auto x = filled(c, 6);
    REQUIRE(one.first(group, x[0]).has_value());
    const auto second = one.second(group, x[1]);
    CHECK(rule_of(second) == "CollectiveMismatch");
    CHECK(second.error().text().find(one.what) != std::string::npos);
    CHECK(rule_of(group.sync(c[0])) == "CommunicatorFailed");
  }
}

TEST_CASE("a failed source is refused, and the targets of all carry its failure; so does a fault that shows later") {
  const std::vector<Client> c = cpus(2);
  {
    const Communicator group = Communicator::init(c).value();
    auto x = filled(c, 6), y = empty_ones(c, 6);
    rt::claim(x[1].slice(2, 1).binding(), some_failure());
    REQUIRE(group.all_reduce(x[0], y[0], Reduction::Sum).has_value());
    CHECK_FALSE(group.all_reduce(x[1], y[1], Reduction::Sum).has_value());
    for (const auto& target : y) CHECK(target.read().error().root().data().message == "it was not to be");
    CHECK(x[0].read().value() == numbers(6));
    CHECK(rule_of(group.sync(c[0])) == "CommunicatorFailed");
  }
  {  // a send that is refused: who waits for it is not left waiting
    const Communicator group = Communicator::init(c).value();
    auto x = filled(c, 6), y = empty_ones(c, 6);
    rt::claim(x[0].slice(2, 1).binding(), some_failure());
    REQUIRE(group.recv(y[1], 0).has_value());
    CHECK_FALSE(group.send(x[0], 1).has_value());
    CHECK(rule_of(group.sync(c[1])) == "CommunicatorFailed");
    CHECK(y[1].read().error().root().data().message == "it was not to be");
  }
  {
    test::FakeServer fake;
    const std::vector<Client> both{fake.client, c[0]};
    const Communicator group = Communicator::init(both).value();
    auto x = filled(both, 6), y = empty_ones(both, 6);
    test::Gate gate;
    auto held = fake.buffer(numbers(1));
    const Stream stream = fake.client.default_stream();
    REQUIRE(test::run(stream, fake.gated, held.arg(), test::scalar(5), test::scalar64(gate.address())).has_value());
    gate.await_entered();
    REQUIRE(test::run(stream, fake.fault, x[0].arg(), test::scalar(1)).has_value());  // not known yet
    REQUIRE(group.all_reduce(x[0], y[0], Reduction::Sum).has_value());
    gate.open = true;
    CHECK_FALSE(group.all_reduce(x[1], y[1], Reduction::Sum).has_value());
    for (const auto& target : y) CHECK(target.read().error().root().code() == ErrorCode::Bounds);
  }
}

TEST_CASE("nobody waits for ever for who does not come, and nobody runs ahead without bound") {
  const std::vector<Client> c = cpus(3);
  {
    const Communicator group = Communicator::init(c).value();
    auto x = filled(c, 6);
    REQUIRE(group.all_reduce(x[0], x[0], Reduction::Sum).has_value());
    const auto waited = group.sync(c[0], std::chrono::milliseconds(1));
    REQUIRE_FALSE(waited.has_value());
    CHECK(waited.error().rule() == "CollectiveTimeout");
    CHECK(waited.error().text().find("rank 1 rank 2") != std::string::npos);
    CHECK(rule_of(group.all_reduce(x[1], x[1], Reduction::Sum)) == "CommunicatorFailed");
    CHECK(x[0].read().error().root().rule() == "CollectiveTimeout");
  }
  {
    const Communicator group = Communicator::init(c).value();
    auto x = filled(c, 6);
    for (std::uint64_t i = 0; i < rt::HostTransport::kMostOutstanding; ++i) REQUIRE(group.barrier(c[0]).has_value());
    CHECK(rule_of(group.all_reduce(x[0], x[0], Reduction::Sum)) == "CollectiveBacklog");
    CHECK_FALSE(group.sync(c[1]).has_value());
  }
}

TEST_CASE("a collective on a stream that is recorded is refused and dooms the capture: nothing of it would run") {
  const std::vector<Client> clients = cpus(2);
  const Communicator group = Communicator::init(clients).value();
  auto from = filled(clients, 4), to = empty_ones(clients, 4);
  const Stream stream = clients[0].stream();
  Result<void> refused;
  const auto graph = capture(stream, [&] { refused = group.all_reduce(stream, from[0], to[0], Reduction::Sum); });
  CHECK(rule_of(refused) == "NotInCapture");
  CHECK(rule_of(graph) == "CaptureDoomed");
  CHECK(rule_of(group.all_reduce(from[1], to[1], Reduction::Sum)) == "CommunicatorFailed");  // nobody waits for the other
  for (const auto& target : to) CHECK_FALSE(target.read().has_value());
}

TEST_CASE("a collective is done for a device whose stream is recorded since its call, and is no part of that graph") {
  const std::vector<Client> clients = cpus(2);
  const Communicator group = Communicator::init(clients).value();
  auto from = filled(clients, 4), to = empty_ones(clients, 4);
  const Stream stream = clients[0].stream();
  REQUIRE(group.all_reduce(stream, from[0], to[0], Reduction::Sum).has_value());
  const auto graph = capture(stream, [&] { CHECK(group.all_reduce(from[1], to[1], Reduction::Sum).has_value()); });
  REQUIRE(graph.has_value());
  CHECK(graph->operations() == 0);
  for (const auto& target : to) CHECK(target.read().value() == std::vector<u32>{1000, 1002, 1004, 1006});
}
