// Page-locked host memory, views of the host's, and memory of others on every device.
#include <doctest/doctest.h>

#include <atomic>
#include <cstddef>
#include <numeric>
#include <optional>
#include <random>
#include <thread>

#include "kiln/runtime/graph.h"
#include "kiln/runtime/interop.h"
#include "kiln/runtime/layout.h"
#include "kiln/runtime/staging.h"
#include "runtime/fake_kernels.h"
#include "runtime/refusals.h"
#include "support/each_client.h"
#include "support/sim.h"

using namespace kiln;
using test::rule_of;

namespace {

std::vector<u32> numbers(std::size_t n, u32 first = 0) {
  std::vector<u32> v(n);
  std::iota(v.begin(), v.end(), first);
  return v;
}
std::vector<u32> all(std::span<const u32> s) { return {s.begin(), s.end()}; }
Error some_failure() { return Error(ErrorCode::Generic, "it was not to be"); }

}  // namespace

TEST_CASE("a buffer can be changed in place while this handle is the only one of its memory") {
  const Client client = test::each_client();
  auto b = Buffer<u32>::from_host(client, numbers(10)).value();
  CHECK(b.can_mutate());
  std::optional<Buffer<u32>> copy(b);
  CHECK_FALSE(b.can_mutate());
  copy.reset();
  CHECK(b.can_mutate());
  copy = b.slice(2, 3);
  CHECK_FALSE(b.can_mutate());
  CHECK_FALSE(copy->can_mutate());
  copy.reset();
  {
    const StridedView<u32, 1> view(b);
    CHECK_FALSE(b.can_mutate());
    CHECK_FALSE(view.can_mutate());
  }
  {
    const auto exported = to_dlpack(b).value();
    CHECK_FALSE(b.can_mutate());
    exported->deleter(exported);
  }
  CHECK(b.can_mutate());
  CHECK(Buffer<u32>::zeroed(client, 0).value().can_mutate());
}

TEST_CASE("what is uploaded from host memory and downloaded to it is there when it is looked at") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  auto host = HostBuffer<u32>::make(client, 1000).value();
  auto back = HostBuffer<u32>::make(client, 1200).value();
  CHECK(all(host.read().value()) == std::vector<u32>(1000, 0));
  auto b = Buffer<u32>::uninitialised(client, 1000).value();
  for (u32 round = 0; round < 5; ++round) {
    std::ranges::copy(numbers(1000, round * 1000), host.write().value().begin());  // after the last upload from it
    REQUIRE(host.upload(stream, b).has_value());
    REQUIRE(back.download(stream, b, 200).has_value());
    const auto got = back.read().value();
    CHECK(back.ready());
    CHECK(all(got.subspan(200)) == numbers(1000, round * 1000));
    CHECK(got[0] == 0);
  }
  const auto part = b.slice(10, 5);
  REQUIRE(back.download(part).has_value());
  CHECK(back[0] == 4010);
  CHECK(back[4] == 4014);
  CHECK(back[5] == 0);
  CHECK(HostBuffer<u32>::make(client, 0).value().read().value().empty());
  CHECK(HostBuffer<u64>::make(client, std::uint64_t{1} << 61).error().code() == ErrorCode::BufferTooBig);
  CHECK(rule_of(back.download(stream, b, 201)) == "HostRange");
  CHECK(rule_of(host.upload(stream, b, 1)) == "HostRange");
  CHECK_FALSE(b.read().has_value());
  CHECK(test::thrown_rule([&] { (void)back[1200]; }) == "HostRange");
  const Client other(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}, .number = 0}).value()));
  auto there = Buffer<u32>::zeroed(other, 1000).value();
  CHECK(rule_of(host.upload(other.stream(), there)) == "ForeignHandle");
  CHECK_FALSE(there.read().has_value());
  CHECK(rule_of(host.download(other.stream(), there)) == "ForeignHandle");
}

TEST_CASE("a download of claimed bytes is never data, and goes nowhere") {
  const Client client = test::each_client();
  auto host = HostBuffer<u32>::make(client, 10).value();
  std::ranges::copy(numbers(10, 50), host.write().value().begin());
  auto b = Buffer<u32>::from_host(client, numbers(10)).value(), c = Buffer<u32>::zeroed(client, 10).value();
  rt::claim(b.slice(3, 1).binding(), some_failure());
  CHECK_FALSE(host.download(b).has_value());
  const auto read = host.read();
  REQUIRE_FALSE(read.has_value());  // not the 50 that was there before either
  CHECK(read.error().root().data().message == "it was not to be");
  CHECK_FALSE(host.upload(c).has_value());
  CHECK(c.read().error().root().data().message == "it was not to be");
  CHECK(all(host.write().value()) == std::vector<u32>(10, 0));
  CHECK(host.upload(c).has_value());
  CHECK(c.read().value() == std::vector<u32>(10, 0));
  CHECK_FALSE(host.download(b).has_value());
  CHECK(host.download(c).has_value());  // all of it
  CHECK(host.read().has_value());
}

TEST_CASE("uploads and downloads wait for no kernel; the faults of those before them show when the bytes are looked at") {
  test::FakeServer fake;
  const Stream stream = fake.client.stream();
  auto b = fake.buffer(numbers(8)), c = fake.buffer(numbers(8));
  auto host = HostBuffer<u32>::make(fake.client, 8).value(), in = HostBuffer<u32>::make(fake.client, 8).value();
  std::ranges::copy(numbers(8, 70), in.write().value().begin());
  test::Gate gate;
  REQUIRE(test::run(stream, fake.gated, b.arg(), test::scalar(5), test::scalar64(gate.address())).has_value());
  gate.await_entered();
  REQUIRE(host.download(stream, b).has_value());
  REQUIRE(in.upload(stream, b).has_value());  // behind the download
  CHECK_FALSE(host.ready());
  CHECK(in.ready());  // to be read; writing it would wait
  gate.open = true;
  CHECK(all(host.read().value()) == std::vector<u32>(8, 5));
  CHECK(b.read().value() == numbers(8, 70));
  // A late fault.
  REQUIRE(test::run(stream, fake.fault, c.arg(), test::scalar(1)).has_value());
  const auto enqueued = host.download(stream, c);
  const auto read = host.read();
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().root().code() == ErrorCode::Bounds);
  // Dropped while it is in use: the memory outlives the tasks.
  test::Gate second;
  REQUIRE(test::run(stream, fake.gated, b.arg(), test::scalar(6), test::scalar64(second.address())).has_value());
  second.await_entered();
  REQUIRE(in.upload(stream, b).has_value());
  std::thread opener([&] { second.open = true; });
  in = HostBuffer<u32>::make(fake.client, 1).value();
  opener.join();
  CHECK(b.read().value() == numbers(8, 70));
}

TEST_CASE("uploads to views and downloads from them move the elements, packed, and touch nothing that lies between") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  std::mt19937 random(11);
  for (int round = 0; round < 40; ++round) {
    CAPTURE(round);
    const std::uint64_t rows = 1 + random() % 7, columns = 1 + random() % 9, first = random() % 5;
    auto m = Buffer<u32, 2>::from_host(client, numbers(20 * 30), {20, 30}).value();
    StridedView<u32, 2> view =
        StridedView(m).range(0, random() % 5, rows, 1 + random() % 2).range(1, random() % 5, columns, 1 + random() % 2);
    if (random() % 2 != 0) view = view.transposed();
    const std::uint64_t n = view.size();
    auto in = HostBuffer<u32>::make(client, n + first).value(), out = HostBuffer<u32>::make(client, n + first + 2).value();
    std::ranges::copy(numbers(n + first, 5000), in.write().value().begin());
    REQUIRE(in.upload(stream, view, first).has_value());
    std::vector<u32> expected = numbers(20 * 30);
    {
      auto model = Buffer<u32, 2>::from_host(client, expected, {20, 30}).value();  // written by the thread
      StridedView<u32, 2> same =
          StridedView<u32, 2>::over(client, model.binding().memory, view.extents(),
                                    {static_cast<std::int64_t>(view.stride(0)), static_cast<std::int64_t>(view.stride(1))},
                                    view.binding().range.begin)
              .value();
      REQUIRE(same.write(numbers(n, static_cast<u32>(5000 + first))).has_value());
      expected = model.read().value();
    }
    REQUIRE(out.download(stream, view, first + 1).has_value());
    const auto got = out.read().value();
    CHECK(all(got.subspan(first + 1, n)) == numbers(n, static_cast<u32>(5000 + first)));
    CHECK(got[0] == 0);
    CHECK(got.back() == 0);
    CHECK(m.read(stream).value() == expected);
  }
  // More rows than go at a time, an element named many times, nothing at all.
  auto tall = Buffer<u32, 2>::from_host(client, numbers(2 * 5000), {5000, 2}).value();
  auto host = HostBuffer<u32>::make(client, 5000).value();
  REQUIRE(host.download(stream, StridedView(tall).range(1, 1, 1)).has_value());
  CHECK(host[4999] == 9999);
  CHECK(host[17] == 35);
  REQUIRE(host.download(stream, StridedView(tall).range(0, 7, 1).broadcast(0, 3)).has_value());
  CHECK(all(host.read().value().subspan(0, 7)) == std::vector<u32>{14, 15, 14, 15, 14, 15, 13});
  CHECK(host.download(stream, StridedView(tall).range(0, 0, 0)).has_value());
  CHECK(host.upload(stream, StridedView(tall).range(0, 0, 0)).has_value());
}

TEST_CASE("claims of strided uploads and downloads are of the elements' bytes, no more and no fewer") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  auto m = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value();
  const auto claim = [&](std::uint64_t row, std::uint64_t column) {
    const std::uint64_t at = (row * 6 + column) * 4;
    rt::claim({m.binding().memory, {at, at + 4}}, some_failure());
  };
  const StridedView<u32, 2> columns = StridedView(m).range(1, 1, 2, 3);  // 1 and 4
  auto host = HostBuffer<u32>::make(client, 8).value();
  claim(0, 0);
  claim(1, 2);
  claim(3, 5);
  REQUIRE(host.download(stream, columns).has_value());
  CHECK(all(host.read().value()) == std::vector<u32>{1, 4, 7, 10, 13, 16, 19, 22});
  claim(2, 4);
  CHECK_FALSE(host.download(stream, columns).has_value());
  const auto refused = host.read();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().root().data().message == "it was not to be");
  // An upload from there goes nowhere, and its target carries why; what lies between does not.
  CHECK_FALSE(host.upload(stream, columns).has_value());
  CHECK_FALSE(columns.read().has_value());
  CHECK(StridedView(m).box({0, 2}, {1, 2}).read().value() == std::vector<u32>{2, 3});
  std::ranges::copy(numbers(8, 70), host.write().value().begin());
  REQUIRE(host.upload(stream, columns).has_value());  // heals its elements
  CHECK(columns.read().value() == numbers(8, 70));
  CHECK_FALSE(StridedView(m).box({1, 2}, {1, 1}).read().has_value());  // and no others
  REQUIRE(host.download(stream, columns).has_value());
  CHECK(all(host.read().value()) == numbers(8, 70));

  CHECK(rule_of(host.upload(stream, columns, 1)) == "HostRange");
  CHECK_FALSE(columns.range(1, 0, 1).read().has_value());
  CHECK(StridedView(m).box({0, 2}, {1, 2}).read().has_value());
  REQUIRE(host.upload(stream, columns).has_value());
  CHECK(rule_of(host.download(stream, columns, 1)) == "HostRange");
  const auto twice = StridedView<u32, 2>::over(client, m.binding().memory, {3, 2}, {1, 1}).value();
  CHECK(rule_of(host.upload(stream, twice)) == "OverlappingStrides");
  CHECK_FALSE(StridedView(m).box({0, 1}, {1, 1}).read().has_value());
  const Client other(rt::make_server(rt::make_cpu_device({.workers = 1, .arch = {}, .number = 0}).value()));
  auto there = Buffer<u32, 2>::from_host(other, numbers(24), {4, 6}).value();
  CHECK(rule_of(host.upload(other.stream(), StridedView(there).range(1, 1, 2, 3))) == "ForeignHandle");
  CHECK_FALSE(StridedView(there).range(1, 1, 1).read().has_value());
  CHECK(StridedView(there).range(1, 2, 1).read().has_value());
  CHECK(rule_of(host.download(other.stream(), StridedView(there).range(1, 2, 1))) == "ForeignHandle");
}

TEST_CASE("strided uploads are part of a graph with the bytes that they had, and what is refused dooms the capture") {
  const Client client = test::each_client();
  const Stream stream = client.stream();
  auto m = Buffer<u32, 2>::from_host(client, numbers(24), {4, 6}).value();
  StridedView<u32, 2> columns = StridedView(m).range(1, 1, 2, 3);
  auto host = HostBuffer<u32>::make(client, 8).value();
  std::ranges::copy(numbers(8, 70), host.write().value().begin());
  const Graph graph = capture(stream, [&] { REQUIRE(host.upload(stream, columns).has_value()); }).value();
  std::ranges::copy(numbers(8, 90), host.write().value().begin());
  CHECK(columns.read().value() == std::vector<u32>{1, 4, 7, 10, 13, 16, 19, 22});
  REQUIRE(graph.replay(stream).has_value());
  CHECK(columns.read().value() == numbers(8, 70));
  CHECK(StridedView(m).range(1, 2, 1).read().value() == std::vector<u32>{2, 8, 14, 20});
  const auto twice = StridedView<u32, 2>::over(client, m.binding().memory, {3, 2}, {1, 1}).value();
  const auto dooms = [&](const char* what, auto&& operation) {
    CAPTURE(what);
    const auto doomed = capture(stream, [&] { CHECK_FALSE(operation().has_value()); });
    REQUIRE_FALSE(doomed.has_value());
    CHECK(doomed.error().rule() == "CaptureDoomed");
    REQUIRE(m.write(numbers(24)).has_value());
  };
  dooms("a strided upload", [&] { return host.upload(stream, twice); });
  dooms("a strided write", [&] { return StridedView<u32, 2>(twice).write(stream, numbers(6)); });
  dooms("a strided copy", [&] { return columns.copy_from(stream, StridedView(m).range(1, 0, 1)); });
  dooms("a strided download", [&] { return host.download(stream, columns); });
}

TEST_CASE("a view of the host's is the bytes of the device, and nothing writes them meanwhile") {
  test::FakeServer fake;
  const Stream stream = fake.client.stream();
  auto b = fake.buffer(numbers(8)), c = fake.buffer(numbers(8, 100));
  test::Gate gate;
  REQUIRE(test::run(stream, fake.gated, b.arg(), test::scalar(5), test::scalar64(gate.address())).has_value());
  std::thread opener([&] {
    gate.await_entered();
    gate.open = true;
  });
  std::optional<HostView<u32>> view(host_view(b).value());  // waits for the kernel
  opener.join();
  CHECK(all(view->elements()) == std::vector<u32>(8, 5));
  CHECK_FALSE(b.can_mutate());
  // Readers may.
  CHECK(rt::copy(stream, c.binding(), b.binding()).has_value());
  CHECK(c.read().value() == std::vector<u32>(8, 5));
  // Writers may not, whoever they are; then what they were to write is claimed.
  const auto open = [&](const Result<void>& r) {
    CHECK(rule_of(r) == "HostViewOpen");
    CHECK(all(view->elements()) == std::vector<u32>(8, 5));
  };
  open(b.write(numbers(8)));
  open(rt::fill_zero(stream, b.binding()));
  open(rt::copy(stream, b.binding(), c.binding()));
  open(StridedView<u32, 1>(b).range(0, 0, 4, 2).write({1, 2, 3, 4}));
  open(test::run(stream, fake.fill, b.arg(), test::scalar(9)));
  CHECK_FALSE(b.read().has_value());
  auto second = host_view(b);
  CHECK_FALSE(second.has_value());  // claimed
  view.reset();
  REQUIRE(b.write(numbers(8)).has_value());
  CHECK(b.read().value() == numbers(8));
  // It keeps the memory.
  auto kept = host_view(fake.buffer(numbers(4, 40))).value();
  CHECK(all(kept.elements()) == numbers(4, 40));
  HostView<u32> moved = std::move(kept);
  CHECK(moved.size() == 4);
  CHECK(kept.size() == 0);
  CHECK(host_view(Buffer<u32>::zeroed(fake.client, 0).value()).value().size() == 0);
}

TEST_CASE("a device whose memory the host does not reach has no views for it, and says what has") {
  const Client client = test::sim_client(test::kSimH200);
  const auto view = host_view(Buffer<u32>::zeroed(client, 4).value());
  REQUIRE_FALSE(view.has_value());
  CHECK(view.error().code() == ErrorCode::UnsupportedIo);
  CHECK(view.error().rule() == "HostViewUnsupported");
  CHECK(view.error().text().find("HostBuffer") != std::string::npos);
}

// --- memory of others ----------------------------------------------------------------------------------------------------------------

TEST_CASE("host memory that is imported is used where it lies, and its owner lives until the last task on it is over") {
  test::FakeServer fake;
  const Stream stream = fake.client.stream();
  std::vector<u32> host = numbers(8);
  std::atomic<int> ended{0};
  const auto owner = [&] { return std::shared_ptr<const void>(host.data(), [&](const void*) { ++ended; }); };
  auto b = std::make_optional(import_buffer(fake.client, host.data(), 8, owner()).value());
  CHECK(b->read().value() == numbers(8));
  auto again = std::make_optional(import_buffer(fake.client, host.data(), 8, owner()).value());  // the same memory
  CHECK(again->binding().memory == b->binding().memory);
  CHECK(rule_of(import_buffer(fake.client, host.data() + 1, 4)) == "AliasingArguments");
  CHECK(rule_of(import_buffer(fake.client, host.data(), 7)) == "AliasingArguments");
  CHECK(rule_of(import_buffer(fake.client, reinterpret_cast<u32*>(reinterpret_cast<char*>(host.data()) + 1), 4)) == "AliasingArguments");
  again.reset();
  CHECK(ended == 0);
  test::Gate gate;
  REQUIRE(test::run(stream, fake.gated, b->arg(), test::scalar(5), test::scalar64(gate.address())).has_value());
  gate.await_entered();
  b.reset();
  CHECK(ended == 0);
  // Imported anew while the kernel runs: that comes after.
  std::thread opener([&] { gate.open = true; });
  auto anew = import_buffer(fake.client, host.data(), 8).value();
  opener.join();
  CHECK(host == std::vector<u32>(8, 5));
  CHECK(anew.read().value() == std::vector<u32>(8, 5));
  REQUIRE(fake.client.sync().has_value());
  REQUIRE(anew.write(numbers(8, 3)).has_value());
  CHECK(host == numbers(8, 3));
  while (ended != 2) std::this_thread::yield();  // by the thread that ran the last task
  CHECK(rule_of(import_memory(fake.client, nullptr, 8)) == "BindingRange");
  CHECK(import_memory(fake.client, nullptr, 0).value() == nullptr);
  std::vector<u64> words(4);
  CHECK(rule_of(import_buffer(fake.client, reinterpret_cast<u32*>(reinterpret_cast<char*>(words.data()) + 1), 2)) == "ElementAlignment");
}

TEST_CASE("memory that was imported to be read is not written, and not imported as writable beside") {
  test::FakeServer fake;
  const Stream stream = fake.client.stream();
  const std::vector<u32> host = numbers(8);
  {
    const Memory memory = import_memory(fake.client, host.data(), 32, {}, true).value();
    auto b = Buffer<u32>::over(fake.client, memory, {8}).value();
    auto c = fake.buffer(numbers(8));
    CHECK(rt::copy(stream, c.binding(), b.binding()).has_value());
    CHECK(rule_of(import_memory(fake.client, host.data(), 32)) == "ReadOnlyMemory");
    CHECK(import_memory(fake.client, host.data(), 32, {}, true).value() == memory);
    CHECK(rule_of(to_dlpack_unversioned(b)) == "ReadOnlyMemory");
    CHECK(rule_of(b.write(numbers(8, 9))) == "ReadOnlyMemory");
    CHECK(rule_of(test::run(stream, fake.fill, b.arg(), test::scalar(9))) == "ReadOnlyMemory");
    CHECK_FALSE(b.read().has_value());
  }
  CHECK(host == numbers(8));
  const Memory anew = import_memory(fake.client, host.data(), 32, {}, true).value();
  CHECK(Buffer<u32>::over(fake.client, anew, {8}).value().read().value() == numbers(8));
}

TEST_CASE("a fault that shows after a strided read was enqueued concerns it if it touches the bytes, and not by what lies between") {
  test::FakeServer fake;
  const Stream first = fake.client.stream(), second = fake.client.stream();
  auto b = fake.buffer(numbers(24));
  const StridedView<u32, 2> rows(b.view(4, 6));
  for (const bool touched : {false, true}) {
    CAPTURE(touched);
    REQUIRE(b.write(numbers(24)).has_value());
    test::Gate gate;
    auto other = fake.buffer(numbers(1));
    REQUIRE(test::run(first, fake.gated, other.arg(), test::scalar(5), test::scalar64(gate.address())).has_value());
    gate.await_entered();
    auto second_row = b.slice(6, 6);
    REQUIRE(test::run(first, fake.fault, second_row.arg(), test::scalar(1)).has_value());  // not known before the gate opens
    const auto view = touched ? rows.range(1, 1, 2, 3) : rows.range(0, 0, 2, 2).range(1, 1, 2, 3);
    std::thread opener([&] { gate.open = true; });
    const auto read = view.read(second);
    opener.join();
    CHECK(read.has_value() == !touched);
    if (!read.has_value()) CHECK(read.error().root().code() == ErrorCode::Bounds);
    else CHECK(*read == std::vector<u32>{1, 4, 13, 16});
  }
}
