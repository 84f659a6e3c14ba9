// Failures that live on bytes, with compiled kernels on the real devices: chains beside chains, repairs, late faults, what is proven
// against what is declared.
#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace scenarios {

KILN_KERNEL(fill, (Out<u32> out, Val<u32> v))
{
  auto i = global_id().x;
  If (i < out.size()) { out[i] = v; }
}
KILN_KERNEL(copy, (In<u32> in, Out<u32> out))
{
  auto i = global_id().x;
  If (i < out.size() && i < in.size()) { out[i] = in[i]; }
}
// Never compiles: not all threads may reach the barrier.
KILN_KERNEL(never, (In<u32> in, Out<u32> out))
{
  If (in[thread_id().x] > 0) { barrier(); }
  out[thread_id().x] = 1;
}
KILN_KERNEL(never_in_place, (InOut<u32> out))
{
  If (out[thread_id().x] > 0) { barrier(); }
  out[thread_id().x] = 1;
}
// Reads out of range for at >= in.size(), which shows only when it runs.
KILN_KERNEL(pick, (In<u32> in, In<u32> at, Out<u32> out))
{
  auto i = global_id().x;
  If (i < out.size()) { out[i] = in[at[i]]; }
}
KILN_KERNEL(add_one, (InOut<u32> x))
{
  auto i = global_id().x;
  If (i < x.size()) { x[i] += 1; }
}
// Declared more than it does.
KILN_KERNEL(only_writes, (InOut<u32> x))
{
  auto i = global_id().x;
  If (i < x.size()) { x[i] = 4; }
}
KILN_KERNEL(ignores, (In<u32>, InOut<u32>, Out<u32> out))
{
  auto i = global_id().x;
  If (i < out.size()) { out[i] = 6; }
}

}  // namespace scenarios

namespace {

const LaunchConfig kOne{{1}, {33}};

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

struct Device {
  Client client;
  Buffer<u32> made(std::vector<u32> values) const { return Buffer<u32>::from_host(client, values).value(); }
  Stream stream() const { return client.stream(); }
};

std::vector<u32> four(u32 v) { return std::vector<u32>(4, v); }

std::string failure_of(const Buffer<u32>& b) {
  const auto read = b.read();
  REQUIRE(!read.has_value());
  CHECK(read.error().code() == ErrorCode::Several);
  return read.error().text();
}

void on_every_device(void (*body)(const Device&)) {
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    body({client});
    CHECK(client.sync().has_value());  // a failed launch is no fault of the device
  }
}

}  // namespace

using namespace scenarios;

TEST_CASE("a good chain gives its data beside a chain that starts with a failure") {
  on_every_device([](const Device& d) {
    const Stream good = d.stream(), bad = d.stream();
    auto a = d.made(four(0)), b = d.made(four(0)), c = d.made(four(0)), x = d.made(four(0)), y = d.made(four(0));
    fill(good, kOne, a, 7).value();
    CHECK(!never(bad, kOne, a, x).has_value());
    copy(good, kOne, a, b).value();
    CHECK(!copy(bad, kOne, x, y).has_value());
    copy(good, kOne, b, c).value();
    CHECK(c.read().value() == four(7));
    CHECK(failure_of(y).find("scenarios::never") != std::string::npos);
    CHECK(failure_of(y).find("scenarios::never") != std::string::npos);  // again
    CHECK(good.sync().has_value());
    CHECK(bad.sync().has_value());
    CHECK(a.read().value() == four(7));
  });
}

TEST_CASE("a failing launch on one stream into memory of another is seen there, and not by other memory") {
  on_every_device([](const Device& d) {
    auto x = d.made(four(1)), other = d.made(four(7));
    CHECK(!never(d.stream(), kOne, other, x).has_value());
    failure_of(x);
    CHECK(!x.read(d.stream()).has_value());
    CHECK(other.read().value() == four(7));
    const Binding claimed[] = {x.binding()}, free[] = {other.binding()};
    CHECK(!rt::check(d.client, claimed).has_value());
    CHECK(rt::check(d.client, free).has_value());
  });
}

TEST_CASE("a host write on one stream comes after what was queued before it on another") {
  on_every_device([](const Device& d) {
    for (int i = 0; i < 20; ++i) {
      auto x = d.made(four(0));
      const Stream a = d.stream(), b = d.stream();
      fill(a, kOne, x, 5).value();
      x.write(b, four(9)).value();
      CHECK(x.read().value() == four(9));
    }
  });
}

TEST_CASE("a kernel that never compiles leaves its input, claims its output, and a host write makes that good") {
  on_every_device([](const Device& d) {
    auto in = d.made(four(7)), out = d.made(four(0));
    CHECK(!never({{1}, {4}}, in, out).has_value());
    CHECK(in.read().value() == four(7));
    failure_of(out);
    out.write(four(9)).value();
    CHECK(out.read().value() == four(9));
    CHECK(!never({{1}, {4}}, in, out).has_value());
    fill(kOne, out, 3).value();
    CHECK(out.read().value() == four(3));
    CHECK(!never_in_place({{1}, {4}}, out).has_value());
    failure_of(out);
  });
}

TEST_CASE("a failure passes along copies, with its chain and its root in the text") {
  on_every_device([](const Device& d) {
    auto in = d.made(four(0)), a = d.made(four(0)), b = d.made(four(0)), c = d.made(four(0));
    CHECK(!never(kOne, in, a).has_value());
    for (const auto& skipped : {copy(kOne, a, b), copy(kOne, b, c)}) {
      REQUIRE(!skipped.has_value());
      CHECK(skipped.error().code() == ErrorCode::Skipped);
    }
    const std::string text = failure_of(c);
    CHECK(occurrences(text, "skipped `") == 2);
    CHECK(text.find("failure #") != std::string::npos);
    CHECK(text.find("barrier") != std::string::npos);
  });
}

TEST_CASE("an access out of range that shows late claims what queued launches made of it, not what the host wrote after it") {
  on_every_device([](const Device& d) {
    auto in = d.made(four(1)), bad = d.made({0, 9, 2, 3}), good = d.made({3, 2, 1, 0}), a = d.made(four(0)), b = d.made(four(0)),
         c = d.made(four(0)), other = d.made(four(0));
    pick(kOne, in, good, other).value();
    pick(kOne, in, bad, a).value();  // known only when it has run
    copy(kOne, a, b);                // queued behind it
    c.write(four(8)).value();
    CHECK(!copy(kOne, c, c).has_value());  // refused: output and input overlap; nothing is claimed
    auto half = a.slice(2, 2);
    half.write({5, 6}).value();  // after the fault: good bytes
    CHECK(other.read().value() == four(1));
    CHECK(c.read().value() == four(8));
    const std::string text = failure_of(b);
    CHECK(text.find("scenarios::pick") != std::string::npos);
    CHECK(text.find("scenarios_test.cpp:") != std::string::npos);
    CHECK(text.find("'in'") != std::string::npos);
    CHECK(half.read().value() == std::vector<u32>{5, 6});
    failure_of(a.slice(0, 2));
    // Unchecked, the same launch on good indices has nothing to report.
    pick.unchecked()(kOne, in, good, a).value();
    CHECK(a.read().value() == four(1));
    copy(kOne, a, b).value();
    CHECK(b.read().value() == four(1));
  });
}

TEST_CASE("a skipped launch writes nothing, and a relaunch after the repair is right") {
  on_every_device([](const Device& d) {
    auto in = d.made(four(2)), x = d.made(four(0)), y = d.made(four(1));
    CHECK(!never(kOne, in, x).has_value());
    CHECK(!copy(kOne, x, y).has_value());
    failure_of(y);
    x.write(four(4)).value();
    failure_of(y);
    copy(kOne, x, y).value();
    CHECK(y.read().value() == four(4));
  });
}

TEST_CASE("what the compiler proves about a buffer counts, not what was declared; only a declared output releases older claims") {
  on_every_device([](const Device& d) {
    auto in = d.made(four(2)), x = d.made(four(0)), out = d.made(four(0));
    const auto claim = [&] { CHECK(!never(kOne, in, x).has_value()); };
    claim();
    const auto skipped = add_one(kOne, x);  // reads it
    REQUIRE(!skipped.has_value());
    CHECK(skipped.error().code() == ErrorCode::Skipped);
    CHECK(only_writes(kOne, x).has_value());  // declared InOut, proven to be written only: it runs, but may have left bytes alone
    failure_of(x);
    CHECK(fill(kOne, x, 5).has_value());
    CHECK(x.read().value() == four(5));
    claim();
    auto y = d.made(four(7));
    CHECK(ignores(kOne, x, y, out).has_value());  // neither buffer is touched: nothing is asked of x, nothing is claimed of y
    CHECK(out.read().value() == four(6));
    CHECK(y.read().value() == four(7));
  });
}

TEST_CASE("an in-place kernel that fails claims the buffer it reads and writes") {
  on_every_device([](const Device& d) {
    const auto k = kernel("in_place_never", [](In<u32> x, Out<u32> y) {
      in_place(y, x);
      If (x[thread_id().x] > 0) { barrier(); }
      y[thread_id().x] = 1;
    });
    auto x = d.made(four(3));
    const LaunchArg args[] = {x.arg(), x.arg()};
    CHECK(!launch(d.client.default_stream(), {k.get(), kOne, args, {}}).has_value());
    failure_of(x);
  });
}
