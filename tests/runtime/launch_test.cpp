// Launches through the server: what is refused, what is skipped, what a failure claims, late faults.
#include <doctest/doctest.h>

#include <string>
#include <thread>
#include <vector>

#include "runtime/fake_kernels.h"

using namespace kiln;
using namespace kiln::test;

namespace {

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }
std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

// The text of a read that must fail.
std::string refused(const Buffer<u32>& b) {
  const auto read = b.read();
  REQUIRE_FALSE(read.has_value());
  CHECK(read.error().code() == ErrorCode::Several);
  return read.error().text();
}

}  // namespace

TEST_CASE("a chain of good launches gives its data while a chain that starts with a failure reports it, on streams side by side") {
  FakeServer s;
  Buffer<u32> a = s.buffer({0}), b = s.buffer({0}), c = s.buffer({0}), x = s.buffer({0}), y = s.buffer({0});
  const Stream good = s.client.stream(), bad = s.client.stream();
  REQUIRE(run(good, s.fill, a.arg(), scalar(7)).has_value());
  CHECK_FALSE(run(bad, s.broken, a.arg(), x.arg()).has_value());
  REQUIRE(run(good, s.copy, a.arg(), b.arg()).has_value());
  const auto skipped = run(bad, s.copy, x.arg(), y.arg());
  REQUIRE_FALSE(skipped.has_value());
  CHECK(skipped.error().code() == ErrorCode::Skipped);
  REQUIRE(run(good, s.copy, b.arg(), c.arg()).has_value());
  CHECK(c.read().value() == std::vector<u32>{7});
  const std::string text = refused(y);
  CHECK(has(text, "broken"));
  CHECK(has(text, "no code for"));
}

TEST_CASE("a kernel that does not compile claims what it declares to write, each time, and is compiled once") {
  FakeServer s;
  Buffer<u32> x = s.buffer({7, 7}), y = s.buffer({0, 0}), other = s.buffer({7, 7});
  for (int i = 0; i < 3; ++i) {
    const auto result = run(s.client.default_stream(), s.broken, x.arg(), y.arg());
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code() == ErrorCode::CompileUnsupported);
    CHECK(result.error().is_refusal());
    CHECK(result.error().kernel() == "broken");
  }
  CHECK(s.compiler.compilations.load() == 1);
  CHECK(s.client.sync().has_value());  // a launch's failure is no fault of the device
  refused(y);
  refused(y);
  CHECK(x.read().value() == std::vector<u32>{7, 7});
  CHECK(other.read().value() == std::vector<u32>{7, 7});
  REQUIRE(y.write({9, 9}).has_value());
  CHECK(y.read().value() == std::vector<u32>{9, 9});
}

TEST_CASE("a failed buffer is good again after a host write, a partial one for its bytes only, or after a launch that writes it whole") {
  FakeServer s;
  const Stream stream = s.client.default_stream();
  Buffer<u32> x = s.buffer({1, 1, 1, 1}), y = s.buffer({0, 0, 0, 0});
  const auto fail = [&] { CHECK_FALSE(run(stream, s.broken, x.arg(), y.arg()).has_value()); };
  SUBCASE("host write of a part") {
    fail();
    Buffer<u32> part = y.slice(1, 2);
    REQUIRE(part.write({4, 5}).has_value());
    CHECK(part.read().value() == std::vector<u32>{4, 5});
    refused(y);
    refused(y.slice(0, 1));
    refused(y.slice(3, 1));
  }
  SUBCASE("a launch that writes it whole") {
    fail();
    REQUIRE(run(stream, s.fill, y.arg(), scalar(3)).has_value());
    CHECK(y.read().value() == std::vector<u32>{3, 3, 3, 3});
  }
  SUBCASE("a launch that reads and writes it is skipped") {
    fail();
    const auto result = run(stream, s.add, y.arg(), scalar(3));
    REQUIRE_FALSE(result.has_value());
    CHECK(result.error().code() == ErrorCode::Skipped);
    refused(y);
  }
  SUBCASE("zeroing and copying to it") {
    fail();
    REQUIRE(rt::fill_zero(stream, y.binding()).has_value());
    CHECK(y.read().value() == std::vector<u32>{0, 0, 0, 0});
    fail();
    REQUIRE(rt::copy(stream, y.binding(), x.binding()).has_value());
    CHECK(y.read().value() == std::vector<u32>{1, 1, 1, 1});
  }
  CHECK(s.client.sync().has_value());
}

TEST_CASE("a failure travels along launches and copies, and the read names the skips and the root") {
  FakeServer s;
  const Stream stream = s.client.default_stream();
  Buffer<u32> x = s.buffer({1}), a = s.buffer({0}), b = s.buffer({0}), c = s.buffer({0}), d = s.buffer({0});
  CHECK_FALSE(run(stream, s.broken, x.arg(), a.arg()).has_value());
  const auto skipped = run(stream, s.copy, a.arg(), b.arg());
  REQUIRE_FALSE(skipped.has_value());
  CHECK(has(skipped.error().text(), "it needs 'x' (memory "));
  CHECK_FALSE(run(stream, s.copy, b.arg(), c.arg()).has_value());
  const std::string text = refused(c);
  CHECK(occurrences(text, "it needed 'x' (memory ") == 2);
  CHECK(occurrences(text, "skipped `") == 2);
  CHECK(has(text, "failure #"));
  CHECK(has(text, "no code for"));
  CHECK_FALSE(rt::copy(stream, d.binding(), c.binding()).has_value());
  CHECK(occurrences(refused(d), "skipped `") == 3);
  const Binding ranges[] = {x.binding(), d.binding()};
  CHECK_FALSE(rt::check(s.client, ranges).has_value());
  CHECK_FALSE(rt::sync(s.client, ranges).has_value());
  CHECK(rt::check(s.client, {ranges, 1}).has_value());
  CHECK(rt::sync(s.client, {ranges, 1}).has_value());
}

TEST_CASE("a failure on one stream is seen through another, and dropping the buffers forgets it") {
  FakeServer s;
  {
    Buffer<u32> x = s.buffer({1}), y = s.buffer({0});
    CHECK_FALSE(run(s.client.stream(), s.broken, x.arg(), y.arg()).has_value());
    CHECK_FALSE(y.read(s.client.stream()).has_value());
    CHECK_FALSE(s.local().failures().empty());
  }
  CHECK(s.local().failures().empty());
}

TEST_CASE("a kernel that is not valid, or could not be recorded, fails every launch with its own words") {
  FakeServer s;
  ir::Kernel k = fill_ir("invalid", ir::Access::In);  // a store to an In
  const Variant invalid(k);
  Buffer<u32> y = s.buffer({1}), z = s.buffer({1});
  auto result = run(s.client.default_stream(), invalid, y.arg(), scalar(1));
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().code() == ErrorCode::CompileValidation);
  CHECK(y.read().value() == std::vector<u32>{1});  // declared In: nothing is claimed

  const Variant unrecorded(fill_ir("unrecorded"), Error(ErrorCode::CompileValidation, "recording went wrong"));
  result = run(s.client.default_stream(), unrecorded, z.arg(), scalar(1));
  REQUIRE_FALSE(result.has_value());
  CHECK(has(result.error().text(), "recording went wrong"));
  CHECK(has(refused(z), "recording went wrong"));
  CHECK(s.compiler.compilations.load() == 0);
}

TEST_CASE("a launch that is refused touches nothing and claims at most the Outs it was to write whole, and the next one works") {
  FakeServer s;
  const Stream stream = s.client.default_stream();
  Buffer<u32> x = s.buffer({1, 1}), y = s.buffer({2, 2});
  const auto rule = [](const Result<void>& r) { return r.has_value() ? std::string("none") : r.error().rule(); };
  CHECK(rule(run(stream, s.fill, y.arg())) == "ArgumentCount");
  CHECK(rule(run(stream, s.copy, y.arg(), y.arg())) == "AliasingArguments");
  CHECK(y.read().value() == std::vector<u32>{2, 2});  // an input, too: not claimed
  CHECK(rule(run(stream, s.fill, y.arg(), scalar64(1))) == "ArgumentType");
  CHECK(has(refused(y), "scalar u64"));
  const LaunchArg args[] = {y.arg(), scalar(9)};
  LaunchRequest request{&s.fill, {}, args};
  request.config.block = Dim3(0);
  CHECK(rule(launch(stream, request)) == "ZeroDimension");
  request.config.block = Dim3(2048);
  CHECK(rule(launch(stream, request)) == "DeviceDimensionExceeded");
  CHECK(has(refused(y), "block"));
  request.variant = nullptr;
  CHECK(rule(launch(stream, request)) == "NoKernel");
  FakeServer other;
  Buffer<u32> foreign = other.buffer({5, 5});
  const auto result = run(stream, s.copy, foreign.arg(), y.arg());
  CHECK(rule(result) == "ForeignHandle");
  CHECK(result.error().code() == ErrorCode::ForeignHandle);
  CHECK(has(result.error().text(), "'x'"));
  CHECK(rule(rt::copy(stream, y.binding(), foreign.binding())) == "ForeignHandle");
  CHECK(x.read().value() == std::vector<u32>{1, 1});
  CHECK(foreign.read().value() == std::vector<u32>{5, 5});
  CHECK(has(refused(y), "another device"));
  for (const std::uint64_t extent : {std::uint64_t{1} << 63, ~std::uint64_t{0}, std::uint64_t{3}}) {
    LaunchArg beyond = y.arg();
    beyond.extents[0] = extent;
    REQUIRE(y.write({3, 3}).has_value());
    const LaunchArg all[] = {beyond, scalar(9)};
    CHECK(rule(launch(stream, {&s.fill, {}, all})) == "ArgumentExtents");
    CHECK(has(refused(y), "extents"));
  }
  CHECK(s.compiler.compilations.load() == 0);
  REQUIRE(run(stream, s.fill, y.arg(), scalar(9)).has_value());
  CHECK(y.read().value() == std::vector<u32>{9, 9});
}

TEST_CASE("an empty grid does nothing: no compilation, no requirement, and old claims survive") {
  FakeServer s;
  const Stream stream = s.client.default_stream();
  Buffer<u32> x = s.buffer({1}), y = s.buffer({0});
  const LaunchArg args[] = {y.arg(), scalar(9)};
  LaunchRequest request{&s.fill, {}, args};
  for (const Dim3 grid : {Dim3(0), Dim3(1, 0), Dim3(5, 5, 0)}) {
    request.config.grid = grid;
    CHECK(launch(stream, request).has_value());
  }
  CHECK(y.read().value() == std::vector<u32>{0});
  CHECK(s.compiler.compilations.load() == 0);
  CHECK_FALSE(run(stream, s.broken, x.arg(), y.arg()).has_value());
  CHECK(launch(stream, request).has_value());
  refused(y);
}

TEST_CASE("empty buffers are pointers of 0 with extents of 0, and reads and writes of them do nothing") {
  FakeServer s;
  const Stream stream = s.client.default_stream();
  static std::atomic<int> seen{0};
  s.compiler.define("copy_k", [](const void* params, const HostGrid*, std::uint64_t, std::uint64_t, void*) {
    for (std::size_t at : {0, 8, 16, 24}) seen += param<std::uint64_t>(params, at) == 0;
  });
  Buffer<u32> x = s.buffer({}), y = s.buffer({});
  CHECK(x.read().value().empty());
  CHECK(x.write(std::vector<u32>{}).has_value());
  const LaunchArg args[] = {x.arg(), y.arg()};
  LaunchRequest request{&s.copy, {}, args};  // one block over nothing
  REQUIRE(launch(stream, request).has_value());
  REQUIRE(s.client.sync().has_value());
  CHECK(seen.load() == 4);
  CHECK(rt::copy(stream, x.binding(), y.binding()).has_value());
  CHECK(rt::fill_zero(stream, x.binding()).has_value());
  CHECK(s.local().failures().empty());
}

TEST_CASE("a limit of a device is told with the device's label") {
  FakeServer s;
  Buffer<u32> y = s.buffer({1, 2});
  const LaunchArg args[] = {y.arg(), scalar(9)};
  LaunchRequest request{&s.fill, {}, args};
  const std::string label = s.client.server().label();
  CHECK(label.ends_with("(cpu)"));
  for (const LaunchConfig& config : {LaunchConfig{{1}, {2048}}, LaunchConfig{{1}, {64, 32}}, LaunchConfig{{1}, {32}, 300000},
                                     LaunchConfig{{2}, {32}, 0, {2}}, automatic(std::uint64_t{1} << 60)}) {
    request.config = config;
    const Result<void> refused = launch(s.client.default_stream(), request);
    REQUIRE_FALSE(refused.has_value());
    CHECK_MESSAGE(refused.error().text().find(label) != std::string::npos, refused.error().text());
  }
}

TEST_CASE("an access out of range is found by the read: kernel, place, buffer, index, extent, thread and block") {
  FakeServer s;
  Buffer<u32> y = s.buffer({0, 0, 0, 0}), other = s.buffer({3});
  REQUIRE(run(s.client.default_stream(), s.fault, y.arg(), scalar(1)).has_value());
  const auto read = y.read();
  REQUIRE_FALSE(read.has_value());
  const Error& root = read.error().causes().at(0).causes().at(0);
  CHECK(root.code() == ErrorCode::Bounds);
  CHECK(root.kernel() == "fault");
  CHECK(root.data().place == "fake.cpp:10");
  REQUIRE(root.data().bounds);
  CHECK(root.data().bounds->memory == "y");
  CHECK(root.data().bounds->operation == "store");
  CHECK(root.data().bounds->index == 4);
  CHECK(root.data().bounds->extent == 4);
  CHECK(root.data().bounds->block[0] == 3);
  CHECK(has(read.error().text(), "'y' at index 4"));
  CHECK(other.read().value() == std::vector<u32>{3});
  REQUIRE(run(s.client.default_stream(), s.fill, y.arg(), scalar(2)).has_value());  // the device stays usable
  CHECK(y.read().value() == std::vector<u32>{2, 2, 2, 2});
  CHECK(s.local().fault_slots().used() == 0);
}

TEST_CASE("a late fault claims what queued launches made of its output, but not bytes the host wrote after it") {
  FakeServer s;
  const Stream stream = s.client.stream();
  Gate gate;
  Buffer<u32> hold = s.buffer({0}), a = s.buffer({0, 0}), b = s.buffer({0, 0}), c = s.buffer({0, 0}), d = s.buffer({0, 0});
  REQUIRE(run(stream, s.gated, hold.arg(), scalar(1), scalar64(gate.address())).has_value());
  REQUIRE(run(stream, s.fault, a.arg(), scalar(1)).has_value());  // A faults, but nobody knows yet
  REQUIRE(run(stream, s.copy, a.arg(), b.arg()).has_value());     // B is queued on its output
  REQUIRE(run(stream, s.copy, a.arg(), c.arg()).has_value());
  REQUIRE(c.slice(0, 1).write(stream, {42}).has_value());  // written after A and B
  REQUIRE(run(stream, s.fill, d.arg(), scalar(6)).has_value());
  gate.open = true;
  refused(a);
  CHECK(has(refused(b), "out of range"));
  CHECK(c.slice(0, 1).read().value() == std::vector<u32>{42});
  refused(c.slice(1, 1));
  CHECK(d.read().value() == std::vector<u32>{6, 6});
}

TEST_CASE("sync confirms late faults: afterwards a check without waiting finds them") {
  FakeServer s;
  Buffer<u32> y = s.buffer({0});
  const Stream stream = s.client.stream();
  REQUIRE(run(stream, s.fault, y.arg(), scalar(1)).has_value());
  CHECK(stream.sync().has_value());  // a fault of a launch is no fault of the device
  const Binding range = y.binding();
  CHECK_FALSE(rt::check(s.client, {&range, 1}).has_value());
}

TEST_CASE("an unchecked launch of the same kernel has no fault record") {
  FakeServer s;
  static std::atomic<int> calls{0};
  s.compiler.define("fill", [](const void* params, const HostGrid* grid, std::uint64_t first, std::uint64_t last, void* scratch) {
    ++calls;
    fill_code(params, grid, first, last, scratch);
  });
  Buffer<u32> y = s.buffer({0});
  const LaunchArg args[] = {y.arg(), scalar(3)};
  LaunchRequest request{&s.fill, {}, args, ir::PrepareOptions::Mode::Unchecked};
  REQUIRE(launch(s.client.default_stream(), request).has_value());
  request.mode = ir::PrepareOptions::Mode::Checked;
  REQUIRE(launch(s.client.default_stream(), request).has_value());
  request.mode = ir::PrepareOptions::Mode::AsKernel;  // is checked
  REQUIRE(launch(s.client.default_stream(), request).has_value());
  CHECK(y.read().value() == std::vector<u32>{3});
  CHECK(calls.load() == 3);
  CHECK(s.compiler.compilations.load() == 2);
}

TEST_CASE("a false requirement is refused at launch with its text, and an empty grid does not ask") {
  FakeServer s;
  ir::Kernel k = fill_ir();
  ir::Builder b(k);
  b.require(b.binary(ir::Opcode::Ge, b.size(0), b.const_u32(4)), "y.size() >= 4");
  const Variant variant(k);
  Buffer<u32> small = s.buffer({0, 0}), large = s.buffer({0, 0, 0, 0});
  const auto result = run(s.client.default_stream(), variant, small.arg(), scalar(1));
  REQUIRE_FALSE(result.has_value());
  CHECK(result.error().rule() == "SizeRequirementViolated");
  CHECK(has(result.error().text(), "y.size() >= 4"));
  CHECK(has(result.error().text(), "2 >= 4 is false"));
  CHECK(has(refused(small), "2 >= 4 is false"));
  CHECK(run(s.client.default_stream(), variant, large.arg(), scalar(1)).has_value());
  CHECK(large.read().value() == std::vector<u32>{1, 1, 1, 1});
  Buffer<u32> none = s.buffer({});
  CHECK(run(s.client.default_stream(), variant, none.arg(), scalar(1)).has_value());
}

TEST_CASE("in_place lets an input and an output be one buffer, and a failure claims it") {
  FakeServer s;
  ir::Kernel k = copy_ir();
  k.in_place = {{1, 0}};
  const Variant variant(k);
  Buffer<u32> x = s.buffer({5, 6});
  REQUIRE(run(s.client.default_stream(), variant, x.arg(), x.arg()).has_value());
  CHECK(x.read().value() == std::vector<u32>{5, 6});
  ir::Kernel bad = copy_ir("broken");
  bad.in_place = {{1, 0}};
  const Variant broken(bad);
  CHECK_FALSE(run(s.client.default_stream(), broken, x.arg(), x.arg()).has_value());
  refused(x);
}

TEST_CASE("a buffer of a view that starts in the middle is given by its own pointer, and the alignment is part of the program") {
  FakeServer s;
  Buffer<u32> x = s.buffer({1, 2, 3, 4, 5, 6, 7, 8});
  REQUIRE(run(s.client.default_stream(), s.add, x.slice(0, 4).arg(), scalar(10)).has_value());
  REQUIRE(run(s.client.default_stream(), s.add, x.slice(4, 4).arg(), scalar(20)).has_value());
  CHECK(s.compiler.compilations.load() == 1);
  REQUIRE(run(s.client.default_stream(), s.add, x.slice(1, 3).arg(), scalar(100)).has_value());
  CHECK(s.compiler.compilations.load() == 2);
  CHECK(x.read().value() == std::vector<u32>{11, 112, 113, 114, 25, 26, 27, 28});
}
