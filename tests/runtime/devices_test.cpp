// Several devices in one process: names, foreign handles, copies from one to another.
#include "kiln/runtime/devices.h"

#include <doctest/doctest.h>

#include <numeric>

#include "cpu/cpu_device.h"
#include "kiln/runtime/strided.h"
#include "runtime/add_one.h"
#include "runtime/refusals.h"
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
Client cpu(unsigned number) { return Client(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}, .number = number}).value())); }

struct Pair {
  const char* what;
  Client from, to;
};
std::vector<Pair> pairs() {
  const Client h200 = test::sim_client(test::kSimH200), t4 = test::sim_client(test::kSimT4), cpu0 = cpu(0), cpu1 = cpu(1);
  return {{"cpu to cpu:1", cpu0, cpu1},
          {"cpu to cuda", cpu0, h200},
          {"cuda to cpu", h200, cpu1},
          {"cuda to cuda:1", h200, t4},
          {"within one", cpu0, cpu0}};
}

}  // namespace

TEST_CASE("cpu:N are further devices on the same processor, each with threads, memory and failures of its own") {
  const Client first = Client::open("cpu").value(), second = Client::open("cpu:1").value();
  CHECK(first == Client::open("cpu:0").value());
  CHECK(second == Client::open("cpu:1").value());
  CHECK_FALSE(first == second);
  CHECK(second.properties().kind == "cpu");
  CHECK(second.properties().arch == first.properties().arch);
  CHECK(second.server().label().ends_with("(cpu:1)"));
  CHECK(rule_of(Client::open("cpu:64")) == "NoSuchDevice");
  CHECK(rule_of(Client::open("cpu:x")) == "UnknownDevice");

  auto a = Buffer<u32>::from_host(first, numbers(10)).value(), b = Buffer<u32>::from_host(second, numbers(10, 5)).value();
  CHECK(rule_of(rt::copy(first.stream(), a.binding(), b.binding())) == "ForeignHandle");
  CHECK(rule_of(b.read(first.stream())) == "ForeignHandle");
  CHECK(rule_of(first.sync(b)) == "ForeignHandle");
  const auto advises = [](const auto& result, const char* what) {
    return !result.has_value() && result.error().text().find(what) != std::string::npos;
  };
  CHECK(advises(rt::copy(first.stream(), a.binding(), b.binding()), "; copy_across() copies between devices"));
  CHECK(advises(b.read(first.stream()), "; use a stream of its device"));
  CHECK(advises(first.sync(b), "; ask a client of its device"));
  CHECK(advises(first.check(b), "; ask a client of its device"));
  LaunchRequest request;
  const LaunchArg args[] = {b.arg()};
  request.variant = &test::add_one();
  request.args = args;
  CHECK(advises(launch(first.stream(), request), "; copy it there with to_device() or copy_across()"));
  CHECK(b.read().value() == numbers(10, 5));
}

TEST_CASE("a CPU device can be of a lower level, or run code for blocks of any shape, and computes the same") {
  const Client usual = Client::open("cpu").value(), lowest = Client::open("cpu:x86-64").value();
  const Client any = Client::open("cpu:any-block").value(), both = Client::open("cpu:2:x86-64:any-block").value();
  CHECK(lowest == Client::open("cpu:0:x86-64").value());
  CHECK_FALSE(usual == lowest);
  CHECK_FALSE(usual == any);
  CHECK(lowest.properties().arch == "x86-64");
  CHECK(any.properties().arch == usual.properties().arch);
  CHECK(both.properties().arch == "x86-64");
  CHECK(lowest.server().label().ends_with("(cpu:x86-64)"));
  CHECK(both.server().label().ends_with("(cpu:2:x86-64:any-block)"));
  for (const Client& client : {usual, lowest, any, both}) {
    auto a = Buffer<u32>::from_host(client, numbers(100)).value();
    LaunchRequest request;
    const LaunchArg args[] = {a.arg()};
    request.variant = &test::add_one();
    request.args = args;
    for (const Dim3 block : {Dim3(32), Dim3(25)}) {
      request.config.block = block;
      request.config.grid = Dim3(4);
      CHECK(launch(client.default_stream(), request).has_value());
    }
    CHECK(a.read().value() == numbers(100, 2));
  }
  // The shape of the blocks is asked of the device, so that code of the one kind is never taken for the other.
  const ir::Kernel& kernel = test::add_one().recorded();
  const auto block_of = [&](const Client& client, const Dim3& block) {
    return static_cast<rt::LocalServer&>(client.server()).device().compile_options(kernel, block, false).block;
  };
  CHECK(block_of(usual, Dim3(5, 7)) == std::array<std::uint32_t, 3>{5, 7, 1});
  CHECK(block_of(any, Dim3(5, 7)) == std::array<std::uint32_t, 3>{0, 0, 0});
  CHECK(block_of(any, Dim3(64)) == std::array<std::uint32_t, 3>{0, 1, 1});
  ir::Kernel declared = kernel;
  declared.block_size = {64, 1, 1};
  CHECK(static_cast<rt::LocalServer&>(any.server()).device().compile_options(declared, Dim3(64), false).block ==
        std::array<std::uint32_t, 3>{64, 1, 1});
  for (const char* wrong :
       {"cpu:", "cpu:x86", "cpu:x86-64-v5", "cpu:any-block:x86-64", "cpu:x86-64:2", "cpu:any-block:any-block", "cpu:x86-64:", "cpux"})
    CHECK(rule_of(Client::open(wrong)) == "UnknownDevice");
  CHECK(rule_of(Client::open("cpu:64:x86-64")) == "NoSuchDevice");
  if (usual.properties().arch != "x86-64-v4") CHECK(rule_of(Client::open("cpu:x86-64-v4")) == "NoSuchDevice");
}

TEST_CASE("two GPUs of one process refuse each other's buffers and streams, before anything is touched") {
  const Client h200 = test::sim_client(test::kSimH200), t4 = test::sim_client(test::kSimT4);
  auto a = Buffer<u32>::from_host(h200, numbers(10)).value(), b = Buffer<u32>::from_host(t4, numbers(10, 5)).value();
  CHECK(rule_of(rt::copy(h200.stream(), a.slice(0, 5).binding(), b.slice(0, 5).binding())) == "ForeignHandle");
  CHECK(rule_of(b.read(h200.stream())) == "ForeignHandle");
  CHECK(rule_of(StridedView<u32, 1>(b).range(0, 0, 5, 2).read(h200.stream())) == "ForeignHandle");
  CHECK(rule_of(rt::fill_zero(t4.stream(), a.slice(0, 5).binding())) == "ForeignHandle");
  LaunchRequest request;
  const LaunchArg args[] = {b.arg()};
  request.variant = &test::add_one();
  request.args = args;
  request.config.block = Dim3(32);
  CHECK(rule_of(launch(h200.stream(), request)) == "ForeignHandle");
  CHECK(b.read().value() == numbers(10, 5));
  CHECK(a.slice(5, 5).read().value() == numbers(5, 5));
  CHECK_FALSE(a.read().has_value());  // what the copy and the fill were to write
}

TEST_CASE("a copy from one device to another is ordered behind the source's work and before the target's") {
  for (const Pair& p : pairs()) {
    CAPTURE(p.what);
    const Stream from_stream = p.from.stream(), to_stream = p.to.stream();
    auto from = Buffer<u32>::from_host(p.from, numbers(1000)).value();
    auto to = Buffer<u32, 2>::uninitialised(p.to, 10, 100).value();
    for (u32 round = 0; round < 3; ++round) {
      REQUIRE(from.write(p.from.stream(), numbers(1000, round)).has_value());
      REQUIRE(copy_across(to_stream, to, from_stream, from).has_value());
      CHECK(to.read(p.to.stream()).value() == numbers(1000, round));
    }
    CHECK(to_device(p.to, from).value().read().value() == numbers(1000, 2));
    CHECK(to_device(p.to, from.slice(5, 0)).value().size() == 0);
    CHECK(from.read().value() == numbers(1000, 2));
  }
}

TEST_CASE("elements of views go to those of views on any other device, whatever the strides of either") {
  for (const Pair& p : pairs()) {
    CAPTURE(p.what);
    const Stream from_stream = p.from.stream(), to_stream = p.to.stream();
    auto from = Buffer<u32, 2>::from_host(p.from, numbers(24), {4, 6}).value();
    auto to = Buffer<u32, 2>::from_host(p.to, numbers(40, 100), {5, 8}).value();
    const StridedView<u32, 2> source = StridedView(from).range(1, 1, 2, 3);                            // 4 x 2
    const StridedView<u32, 2> target = StridedView(to).range(0, 0, 2, 3).range(1, 1, 4).transposed();  // 4 x 2, turned
    REQUIRE(copy_across(to_stream, target, from_stream, source).has_value());
    CHECK(target.read(to_stream).value() == std::vector<u32>{1, 4, 7, 10, 13, 16, 19, 22});
    CHECK(to.read(to_stream).value() == std::vector<u32>{100, 1,   7,   13,  19,  105, 106, 107, 108, 109, 110, 111, 112, 113,
                                                         114, 115, 116, 117, 118, 119, 120, 121, 122, 123, 124, 4,   10,  16,
                                                         22,  129, 130, 131, 132, 133, 134, 135, 136, 137, 138, 139});
    REQUIRE(copy_across(target, StridedView(from).range(1, 0, 1).broadcast(1, 2)).has_value());  // one element many times
    CHECK(target.read().value() == std::vector<u32>{0, 0, 6, 6, 12, 12, 18, 18});
    CHECK(copy_across(target.range(0, 0, 0), source.range(0, 0, 0)).has_value());
    CHECK(rule_of(copy_across(target, source.range(0, 0, 3))) == "CopySize");
    CHECK_FALSE(target.read().has_value());
    CHECK(StridedView(to).range(1, 0, 1).read().value() == std::vector<u32>{100, 108, 116, 124, 132});  // what lies between
  }
}

TEST_CASE("a copy of views between devices looks at its elements' claims only, and claims its elements only") {
  for (const Pair& p : pairs()) {
    CAPTURE(p.what);
    auto from = Buffer<u32, 2>::from_host(p.from, numbers(24), {4, 6}).value();
    auto to = Buffer<u32, 2>::from_host(p.to, numbers(24, 100), {4, 6}).value();
    const StridedView<u32, 2> source = StridedView(from).range(1, 1, 2, 3), target = StridedView(to).range(1, 1, 2, 3);
    const auto claim = [](const Buffer<u32, 2>& b, std::uint64_t row, std::uint64_t column) {
      const std::uint64_t at = (row * 6 + column) * 4;
      rt::claim({b.binding().memory, {at, at + 4}}, Error(ErrorCode::Generic, "it was not to be"));
    };
    claim(from, 1, 2);
    claim(to, 2, 4);
    claim(to, 2, 5);
    REQUIRE(copy_across(target, source).has_value());
    CHECK(target.read().value() == std::vector<u32>{1, 4, 7, 10, 13, 16, 19, 22});  // healed
    CHECK_FALSE(StridedView(to).box({2, 5}, {1, 1}).read().has_value());
    claim(from, 3, 4);
    CHECK_FALSE(copy_across(target, source).has_value());
    const auto read = target.range(0, 0, 1).read();  // all of the target
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().root().data().message == "it was not to be");
    CHECK(StridedView(to).range(1, 2, 2).range(0, 0, 2).read().value() == std::vector<u32>{102, 103, 108, 109});
    const auto twice = StridedView<u32, 2>::over(p.to, to.binding().memory, {4, 2}, {1, 1}).value();
    CHECK(rule_of(copy_across(twice, StridedView(from).range(1, 2, 2).range(0, 0, 4))) == "OverlappingStrides");
  }
}

TEST_CASE("a strided copy between devices that is larger than what is on the host at a time goes whole") {
  const Client a = cpu(0), b = cpu(1);
  constexpr std::uint64_t kRows = 3000, kColumns = 4000;
  const auto from = Buffer<u32, 2>::from_host(a, numbers(kRows * kColumns), {kRows, kColumns}).value();
  auto to = Buffer<u32, 2>::zeroed(b, kRows, kColumns).value();
  const StridedView<u32, 2> source = StridedView(from).range(1, 1, kColumns - 1);
  REQUIRE(copy_across(StridedView(to).range(1, 0, kColumns - 1), source).has_value());
  const auto read = to.read().value();
  bool same = true;
  for (std::uint64_t r = 0; r < kRows; ++r)
    for (std::uint64_t c = 0; c < kColumns; ++c) same = same && read[r * kColumns + c] == (c + 1 < kColumns ? r * kColumns + c + 1 : 0);
  CHECK(same);
}

TEST_CASE("a copy larger than what is on the host at a time goes whole") {
  const Client a = cpu(0), b = cpu(1);
  const auto host = numbers((36u << 20) / 4 + 3);
  const auto from = Buffer<u32>::from_host(a, host).value();
  CHECK(to_device(b, from).value().read().value() == host);
}

TEST_CASE("a claimed source is not copied to another device: the target carries the failure, root and all") {
  for (const Pair& p : pairs()) {
    CAPTURE(p.what);
    auto from = Buffer<u32>::from_host(p.from, numbers(100)).value(), to = Buffer<u32>::from_host(p.to, numbers(100, 7)).value();
    rt::claim(from.slice(50, 1).binding(), Error(ErrorCode::Generic, "it was not to be"));
    const auto copied = copy_across(to, from);
    REQUIRE_FALSE(copied.has_value());
    CHECK(copied.error().code() == ErrorCode::Skipped);
    const auto read = to.slice(0, 1).read();
    REQUIRE_FALSE(read.has_value());
    CHECK(read.error().root().data().message == "it was not to be");
    CHECK_FALSE(to_device(p.to, from).has_value());
    auto part = to.slice(0, 50);
    REQUIRE(copy_across(part, from.slice(0, 50)).has_value());  // what is not claimed
    CHECK(part.read().value() == numbers(50));
    CHECK_FALSE(to.read().has_value());
  }
}

TEST_CASE("a copy between devices that is refused leaves its target unreadable, and its source as it was") {
  const Client a = cpu(0), b = test::sim_client(test::kSimH200);
  auto from = Buffer<u32>::from_host(a, numbers(100)).value(), to = Buffer<u32>::from_host(b, numbers(100, 7)).value();
  CHECK(rule_of(copy_across(to, from.slice(0, 99))) == "CopySize");
  CHECK_FALSE(to.read().has_value());
  REQUIRE(copy_across(to, from).has_value());
  CHECK(rule_of(copy_across(b.stream(), to, b.stream(), from)) == "ForeignHandle");
  CHECK_FALSE(to.read().has_value());
  CHECK(rule_of(rt::copy_across(a.stream(), to.binding(), b.stream(), from.binding())) == "ForeignHandle");
  CHECK(from.read().value() == numbers(100));
}

TEST_CASE("CPU devices reach one another's memory, others do not through Kiln") {
  const Client a = cpu(0), b = cpu(1), h200 = test::sim_client(test::kSimH200), t4 = test::sim_client(test::kSimT4);
  for (int again = 0; again < 2; ++again) {
    CHECK(peer_access(a, b));
    CHECK(peer_access(h200, h200));
    CHECK_FALSE(peer_access(a, h200));
    CHECK_FALSE(peer_access(h200, t4));
  }
}
