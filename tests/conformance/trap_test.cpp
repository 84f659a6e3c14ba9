// What a trap does, on every device: the launch fails with kernel, text, line and thread, the device is lost and says why, and what was
// logged before is there. Each trap has a device of its own. A real one is lost to this process: the first case that loses it is the only
// one there, and what needs it whole stands before.
#include <algorithm>
#include <utility>

#include "conformance/everywhere.h"
#include "cpu/cpu_device.h"
#include "interp/interp.h"
#include "src/memory_order.h"
#include "src/server.h"
#include "support/clients.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace {

// Runs `f` on a device of each kind that is asked for, which nobody else uses afterwards.
template <class F>
void on_lost_devices(F&& f) {
  if (asked_for("cpu")) {
    for (const char* arch : {"", "x86-64"}) f(Client(rt::make_server(rt::make_cpu_device({.workers = 2, .arch = arch}).value())));
  }
  if (asked_for("sim")) {
    const SimScript quiet(R"({"quiet": true})");
    for (const SimDevice& sim : kSimDevices) f(sim_client(sim.ordinal));
  }
  static bool lost = false;
  if (asked_for("cuda") && !std::exchange(lost, true)) f(Client::open("cuda").value());
}

const Error& root(const Error& error) { return error.causes().empty() ? error : root(error.causes().front()); }

std::shared_ptr<const Variant> negative_traps() {
  return kernel("negative_traps", [](In<i32> x, InOut<i32> y) {
    auto i = global_id().x;
    If (i < x.size()) {
      log("looks at {}", i);
      If (x[i] < 0) { trap("x may not be negative"); }
      y[i] = 2 * x[i];
    }
  });
}

Result<void> go(const Client& client, const Variant& variant, const Buffer<i32>& x, const Buffer<i32>& y, ir::PrepareOptions::Mode mode) {
  const LaunchArg args[] = {x.arg(), y.arg()};
  return launch(client.default_stream(), {&variant, {{2}, {32}}, args, mode});
}

}  // namespace

TEST_CASE("a trap that no thread comes to changes nothing") {
  const auto k = kernel("careful", [](In<u32> x, Out<u32> y) {
    auto i = global_id().x;
    If (i < y.size()) {
      If (x[i] > 1000) { trap("too much"); }
      Else { y[i] = warp::sum(x[i]); }
    }
  });
  std::vector<u32> x(45, 3), sums(45, 32 * 3);
  std::fill(sums.begin() + 32, sums.end(), 13 * 3);
  check_run(*k, {{1}, {45}}, {buffer(x), filled<u32>(45, 0)}, 1, sums);
}

TEST_CASE("a trap fails the launch with its text, line and thread, and from then on the device is lost and says why; checked or not") {
  const auto k = negative_traps();
  for (const auto mode : {ir::PrepareOptions::Mode::Checked, ir::PrepareOptions::Mode::Unchecked}) {
    on_lost_devices([&](const Client& client) {
      CAPTURE(client.properties().name);
      CAPTURE(static_cast<int>(mode));
      std::vector<Line> lines;
      const Listening listening(client, lines);
      std::vector<i32> numbers(50, 1);
      const auto good = Buffer<i32>::from_host(client, numbers).value(), y = Buffer<i32>::zeroed(client, 50).value();
      REQUIRE(go(client, *k, good, y, mode).has_value());
      CHECK(y.read().value() == std::vector<i32>(50, 2));
      numbers[37] = -1;
      const auto bad = Buffer<i32>::from_host(client, numbers).value();
      // Where the device is quick, the launch knows already.
      const auto launched = go(client, *k, bad, y, mode);
      if (!launched.has_value()) CHECK(root(launched.error()).code() == ErrorCode::Trapped);
      const auto read = y.read();
      REQUIRE_FALSE(read.has_value());
      CHECK(read.error().is_device_poisoned());
      const Error& trap = root(read.error());
      CAPTURE(read.error().text());
      CHECK(trap.code() == ErrorCode::Trapped);
      CHECK(trap.is_device_poisoned());
      CHECK(trap.kernel() == "negative_traps");
      CHECK(trap.data().message.starts_with("trap: x may not be negative, in thread (5, 0, 0) of block (1, 0, 0)"));
      CHECK(trap.data().place.find("trap_test.cpp:41") != std::string::npos);
      REQUIRE(trap.data().bounds.has_value());
      CHECK(trap.data().bounds->thread[0] == 5);
      CHECK(std::count(lines.begin(), lines.end(), Line{{1, 0, 0}, {5, 0, 0}, "looks at 37"}) == 2);
      // Nothing works any more, and everything says why.
      const auto says_why = [&](const auto& result) {
        REQUIRE_FALSE(result.has_value());
        CHECK(result.error().is_device_poisoned());
        CHECK(result.error().text().find("x may not be negative") != std::string::npos);
      };
      says_why(go(client, *k, good, y, mode));
      says_why(good.read());
      says_why(client.sync());
      says_why(Buffer<i32>::zeroed(client, 4));
      says_why(client.default_stream().sync());
    });
  }
}

TEST_CASE("a thread that traps does nothing more, and its barrier does not wait for it") {
  const auto k = kernel("stops", [](InOut<u32> y) {
    auto i = thread_id().x;
    If (i == 3) {
      trap();
      y[i] = 99;
    }
    barrier();
    y[i] = 1;
  });
  const auto prepared = k->prepared(ir::PrepareOptions::Mode::Unchecked);
  std::vector<std::uint8_t> bytes(64 * 4);
  interp::Launch launch;
  launch.block[0] = 64;
  launch.args.push_back({.is_buffer = true, .bytes = &bytes, .extents = {64}, .strides = {}});
  const interp::Outcome judged = interp::run(**prepared, launch);
  CHECK(judged.misuse.empty());
  REQUIRE(judged.fault.has_value());
  CHECK(judged.fault->trapped == judged.fault->site + 1);
  const auto y = from_bytes<u32>(bytes);
  for (u32 i = 0; i < 64; ++i) CHECK(y[i] == (i == 3 ? 0 : 1));
  on_lost_devices([&](const Client& client) {
    CAPTURE(client.properties().name);
    const auto buffer = Buffer<u32>::zeroed(client, 64).value();
    const LaunchArg args[] = {buffer.arg()};
    kiln::launch(client.default_stream(), {k.get(), {{1}, {64}}, args, {}});
    const auto read = buffer.read();
    REQUIRE_FALSE(read.has_value());
    CHECK(root(read.error()).data().message.starts_with("trap, in thread (3, 0, 0) of block (0, 0, 0)"));
    if (client.properties().kind != "cpu") return;
    // The memory itself: the device is the host's.
    const auto* memory = reinterpret_cast<const u32*>(rt::address(buffer.arg().binding));
    for (u32 i = 0; i < 64; ++i) CHECK(memory[i] == (i == 3 ? 0 : 1));
  });
}

TEST_CASE("a trap is told where another thread was first with a fault of its own") {
  const auto k = kernel("both", [](InOut<u32> y) {
    auto i = thread_id().x;
    check(i == 1000, "never so");
    y[i + 1000] = 1;
    barrier();
    If (i == 40) { trap("the end"); }
  });
  on_lost_devices([&](const Client& client) {
    CAPTURE(client.properties().name);
    const auto y = Buffer<u32>::zeroed(client, 64).value();
    const LaunchArg args[] = {y.arg()};
    launch(client.default_stream(), {k.get(), {{1}, {64}}, args, {}});
    const auto read = y.read();
    REQUIRE_FALSE(read.has_value());
    const Error& trap = root(read.error());
    CHECK(trap.code() == ErrorCode::Trapped);
    CHECK(trap.kernel() == "both");
    CHECK(trap.data().message.starts_with("trap: the end"));
    CHECK_FALSE(trap.data().bounds.has_value());  // the thread is not known
  });
}
