// What a failed check says, on every device: the text with its values, the line, the thread; and what goes on.
#include "conformance/everywhere.h"

using namespace kiln;
using namespace kiln::test;

namespace checks {

// y[i] = 2 * x[i], where no element may be above `most`.
KILN_KERNEL(doubled, (In<u32> x, Out<u32> y, Val<u32> most))
{
  auto i = global_id().x;
  If (i < y.size() && i < x.size()) {
    Val<u32> v = x[i];
    check(v <= most, "x[{}] is {}, which is too much", i, v);
    y[i] = 2 * v;
  }
}

}  // namespace checks

namespace {

struct Failed {
  std::string text;
  Error root;
};
// What reading `y` says, which must be refused.
Failed failure(const Buffer<u32>& y) {
  const auto read = y.read();
  REQUIRE_FALSE(read.has_value());
  return {read.error().text(), read.error().causes().at(0).causes().at(0)};
}

// A kernel with one check of a value, and what the value is in its text.
template <class T>
void check_value_text(T value, const std::string& wanted) {
  CAPTURE(wanted);
  const auto k = kernel("one_value", [](Val<T> v, Out<u32> y) {
    check(y.size() == 0, "the value is {}", v);
    y[0] = 1;
  });
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto y = Buffer<u32>::zeroed(client, 1).value();
    LaunchArg args[2];
    args[0].type = ir_type<T>;
    if constexpr (std::same_as<T, bool>) args[0].bits = value;
    else std::memcpy(&args[0].bits, &value, sizeof value);
    args[1] = y.arg();
    REQUIRE(launch(client.default_stream(), {k.get(), {{1}, {1}}, args, {}}).has_value());
    CHECK(failure(y).root.data().message == "check failed: the value is " + wanted + ", in thread (0, 0, 0) of block (0, 0, 0)");
  }
}

}  // namespace

TEST_CASE("a check that fails claims the outputs with its text, values, line and thread; the kernel goes on and the device is well") {
  std::vector<u32> numbers(100, 7);
  numbers[77] = 5000;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto x = Buffer<u32>::from_host(client, numbers).value();
    auto y = Buffer<u32>::zeroed(client, 100).value();
    REQUIRE(checks::doubled({{4}, {33}}, x, y, 100).has_value());
    const Failed failed = failure(y);
    CAPTURE(failed.text);
    CHECK(failed.root.code() == ErrorCode::CheckFailed);
    CHECK(failed.root.data().message == "check failed: x[77] is 5000, which is too much, in thread (11, 0, 0) of block (2, 0, 0)");
    CHECK(failed.root.kernel() == "checks::doubled");
    CHECK(failed.root.data().place.find("check_test.cpp:15") != std::string::npos);
    REQUIRE(failed.root.data().bounds.has_value());
    CHECK(failed.root.data().bounds->operation == "check");
    CHECK(failed.root.data().bounds->thread == std::array<std::uint32_t, 3>{11, 0, 0});
    CHECK_FALSE(failed.root.is_device_poisoned());
    CHECK_FALSE(failed.root.is_refusal());
    // The same launch where it holds.
    REQUIRE(checks::doubled({{4}, {33}}, x, y, 5000).has_value());
    CHECK(y.read().value()[77] == 10000);
  }
}

TEST_CASE("an unchecked launch does not look, and its result is there") {
  for (const Client& client : devices()) {
    const auto x = Buffer<u32>::from_host(client, {1, 2, 3}).value();
    auto y = Buffer<u32>::zeroed(client, 3).value();
    REQUIRE(checks::doubled.unchecked()({{1}, {3}}, x, y, 0).has_value());
    CHECK(y.read().value() == std::vector<u32>{2, 4, 6});
  }
}

TEST_CASE("the text shows each value as its type writes it") {
  check_value_text<i32>(-5, "-5");
  check_value_text<u8>(200, "200");
  check_value_text<i16>(-300, "-300");
  check_value_text<u64>(~u64{0}, "18446744073709551615");
  check_value_text<f16>(f16(0.1), "0.1");
  check_value_text<bf16>(bf16(-3), "-3");
  check_value_text<f32>(0.1f, "0.1");
  check_value_text<f64>(-2.5, "-2.5");
  check_value_text<bool>(true, "true");
}

TEST_CASE("of several checks that fail, each by many threads, one is told whole") {
  const auto k = kernel("several", [](In<u32> x, Out<u32> y) {
    auto i = global_id().x;
    check(x[i] != 1, "one at {}", i);
    If (i % 2 == 1) { check(x[i] != 3, "three at {} of {}", i, block_dim().x); }
    check(warp::sum(x[i]) == 0u, "a whole warp");
    y[i] = x[i];
  });
  std::vector<u32> numbers(64);
  for (u32 i = 0; i < 64; ++i) numbers[i] = i % 4;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto x = Buffer<u32>::from_host(client, numbers).value();
    const auto y = Buffer<u32>::zeroed(client, 64).value();
    const LaunchArg args[] = {x.arg(), y.arg()};
    REQUIRE(launch(client.default_stream(), {k.get(), {{2}, {32}}, args, {}}).has_value());
    const Failed failed = failure(y);
    const BoundsFault& at = failed.root.data().bounds.value();
    const u32 i = at.block[0] * 32 + at.thread[0];
    const std::string& said = failed.root.data().message;
    CAPTURE(said);
    if (said.find("one at ") != std::string::npos)
      CHECK((i % 4 == 1 && said.starts_with("check failed: one at " + std::to_string(i) + ",")));
    else if (said.find("three at ") != std::string::npos)
      CHECK((i % 4 == 3 && said.starts_with("check failed: three at " + std::to_string(i) + " of 32,")));
    else CHECK(said.starts_with("check failed: a whole warp, in thread ("));
  }
}

TEST_CASE("a check that is known to hold costs nothing, and one that is known not to hold always fails") {
  const auto k = kernel("known", [](Out<u32> y) {
    auto i = global_id().x;
    check(i >= 0, "never");
    y[i] = 1;
  });
  CHECK(k->prepared().value()->sites.size() == 1);  // the store's
  const auto fails = kernel("fails", [](Out<u32> y) {
    check(Val<bool>(false), "always");
    y[0] = 1;
  });
  for (const Client& client : devices()) {
    const auto y = Buffer<u32>::zeroed(client, 1).value();
    const LaunchArg args[] = {y.arg()};
    REQUIRE(launch(client.default_stream(), {fails.get(), {{1}, {1}}, args, {}}).has_value());
    CHECK(failure(y).text.find("check failed: always, in thread (0, 0, 0)") != std::string::npos);
  }
}
