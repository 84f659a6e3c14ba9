// What kernels log, on every device: each thread's lines whole and in its own order, whatever the types, wherever they stand; and what a
// full log says.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <future>
#include <map>
#include <thread>

#include "conformance/everywhere.h"
#include "cpu/cpu_device.h"
#include "src/server.h"
#include "support/clients.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;

namespace logs {

KILN_KERNEL(two_lines, (In<u32> x, Out<u32> y))
{
  auto i = global_id().x;
  log("first of {}", i);
  If (i < y.size() && i < x.size()) {
    y[i] = x[i] + 1;
    log("x[{}] = {}", i, x[i]);
  }
}

}  // namespace logs

namespace {

using ByThread = std::map<std::array<std::uint32_t, 6>, std::vector<std::string>>;
ByThread by_thread(const std::vector<Line>& log) {
  ByThread all;
  for (const Line& l : log) all[{l.block[2], l.block[1], l.block[0], l.thread[2], l.thread[1], l.thread[0]}].push_back(l.text);
  return all;
}
// In the order of the threads.
std::vector<std::string> texts(const std::vector<Line>& log) {
  std::vector<std::string> all;
  for (const auto& [thread, lines] : by_thread(log)) all.insert(all.end(), lines.begin(), lines.end());
  return all;
}

void check_logs(const std::vector<Outcome>& outcomes, const std::vector<std::string>& wanted) {
  CHECK(outcomes.size() >= 6);
  for (const Outcome& o : outcomes) {
    CAPTURE(o.where);
    CHECK_FALSE(o.error);
    CHECK(texts(o.log) == wanted);
  }
}

// One thread's value in the text of a log.
template <class T>
void check_value(const char* text, T value, const std::string& wanted, void (*body)(Val<T>)) {
  CAPTURE(text);
  static void (*said)(Val<T>) = nullptr;
  said = body;
  const auto k = kernel("one_value", [](Val<T> v) { said(v); });
  check_logs(run_everywhere(*k, {{1}, {1}}, {scalar(value)}), {wanted});
}
#define CHECK_LOGGED(T, TEXT, VALUE, WANTED) check_value<T>(TEXT, VALUE, WANTED, +[](Val<T> v) { log(TEXT, v); })

std::shared_ptr<const Variant> chatty() {
  return kernel("chatty", [](Val<u32> times) {
    for (auto n : range(times)) log("{} of {}", n, global_id().x);
  });
}
void launch_chatty(const Client& client, const Variant& variant, u32 threads, u32 times) {
  LaunchArg arg;
  arg.type = ir::Type::U32;
  arg.bits = times;
  const auto launched = launch(client.default_stream(), {&variant, {{1}, {threads}}, {&arg, 1}, {}});
  REQUIRE_MESSAGE(launched.has_value(), launched.error().text());
}

}  // namespace

TEST_CASE("each thread's lines come whole and in its own order, with block and thread, checked and unchecked, and the outputs are right") {
  std::vector<u32> x(70);
  for (u32 i = 0; i < 70; ++i) x[i] = 1000 * i;
  std::vector<std::string> wanted;
  for (u32 i = 0; i < 99; ++i) {
    wanted.push_back("first of " + std::to_string(i));
    if (i < 70) wanted.push_back("x[" + std::to_string(i) + "] = " + std::to_string(1000 * i));
  }
  const auto k = made(logs::two_lines.record());
  const auto outcomes = run_everywhere(*k, {{3}, {33}}, {buffer(x), filled<u32>(70, 0)});
  check_logs(outcomes, wanted);
  for (u32& v : x) ++v;
  expect(outcomes, 1, x);
}

TEST_CASE("a line carries up to eight values of any types") {
  const auto k = kernel("eight", [](Val<u8> a, Val<i16> b, Val<f16> c, Val<u64> d, Val<f64> e) {
    log("{} {} {} {} {} {} {} {{{}}}", a, b, c, d, e, a < 5, 7u, -1.5f);
  });
  check_logs(run_everywhere(*k, {{1}, {1}}, {scalar<u8>(200), scalar<i16>(-300), scalar(f16(0.1)), scalar(~u64{0}), scalar(0.1)}),
             {"200 -300 0.1 18446744073709551615 0.1 false 7 {-1.5}"});
}

TEST_CASE("a text without values, and a kernel without arguments") {
  const auto k = kernel("words", [] { log("words"); });
  check_logs(run_everywhere(*k, {{1}, {2}}, {}), {"words", "words"});
}

TEST_CASE("values are written as their types and the format say") {
  CHECK_LOGGED(bool, "<{}>", true, "<true>");
  CHECK_LOGGED(bool, "<{:6}>", false, "<false >");
  CHECK_LOGGED(i8, "<{}>", i8{-128}, "<-128>");
  CHECK_LOGGED(i8, "<{:x}>", i8{-128}, "<-80>");
  CHECK_LOGGED(u16, "<{:06X}>", u16{0xbeef}, "<00BEEF>");
  CHECK_LOGGED(i32, "<{:05}>", -42, "<-0042>");
  CHECK_LOGGED(i32, "<{:5}>", -42, "<  -42>");
  CHECK_LOGGED(u64, "<{:b}>", u64{10}, "<1010>");
  CHECK_LOGGED(u64, "<{:o}>", u64{64}, "<100>");
  CHECK_LOGGED(bf16, "<{}>", bf16(-3), "<-3>");
  CHECK_LOGGED(e4m3, "<{}>", e4m3(-3), "<-3>");
  CHECK_LOGGED(e5m2, "<{:.3f}>", e5m2(0.375f), "<0.375>");
  CHECK_LOGGED(f16, "<{:.2f}>", f16(0.25), "<0.25>");
  CHECK_LOGGED(f32, "<{}>", 0.1f, "<0.1>");
  CHECK_LOGGED(f32, "<{:09.3f}>", -3.14159f, "<-0003.142>");
  CHECK_LOGGED(f64, "<{:.1e}>", 12345.0, "<1.2e+04>");
  CHECK_LOGGED(f64, "<{:8.3g}>", 0.00012345, "<0.000123>");
  CHECK_LOGGED(f64, "<{:06}>", -std::numeric_limits<f64>::infinity(), "<  -inf>");
  CHECK_LOGGED(f32, "<{}>", -std::numeric_limits<f32>::quiet_NaN(), "<nan>");
}

TEST_CASE("whole numbers, floats and bools in the formats that others print them in") {
  const auto k = kernel("formats", [](Val<i32> a, Val<u32> b, Val<u64> c, Val<f64> pi, Val<f32> small) {
    log("{} {} {}", a, b, c);
    log("{:x} {:X} {:o} {:x}", b, b, b, c);
    log("{:.6f} {:.2f} {:e} {:g}", pi, pi, pi, small);
    log("[{:8}] [{:08}] [{:8.3f}] [{:08.3f}]", a, a, pi, pi);
    log("{} {}", a < 0, b == 0);
  });
  check_logs(run_everywhere(*k, {{1}, {1}},
                            {scalar(-42), scalar(255u), scalar<u64>(0x123456789ABCDEF0), scalar(3.141592653589793), scalar(1e-10f)}),
             {"-42 255 1311768467463790320", "ff FF 377 123456789abcdef0", "3.141593 3.14 3.141593e+00 1e-10",
              "[     -42] [-0000042] [   3.142] [0003.142]", "true false"});
}

TEST_CASE("threads log in branches, loops, switches and behind returns of others, and around barriers") {
  const auto k = kernel("control", [](In<u32> x, InOut<u32> y) {
    auto i = thread_id().x;
    Shared<u32> s(64);
    s[i] = x[i];
    barrier();
    Val<u32> other = s[63 - i];
    If (i % 16 == 3) { log("a {} {}", i, other); }
    barrier();
    If (i % 2 == 1) { Return(); }
    Switch(i) {
      Case(0, 8) { log("b {}", i); }
      Default {
        If (i > 60) { log("c {}", i); }
      }
    }
    for (auto n : range(other)) {
      If (i == 62) { log("d {}", n); }
      If (n == 1) { Break(); }
    }
    y[i] = other;
  });
  std::vector<u32> x(64);
  for (u32 i = 0; i < 64; ++i) x[i] = i + 1;
  check_logs(run_everywhere(*k, {{1}, {64}}, {buffer(x), filled<u32>(64, 0)}),
             {"b 0", "a 3 61", "b 8", "a 19 45", "a 35 29", "a 51 13", "c 62", "d 0", "d 1"});
}

TEST_CASE("a line tells kernel, file and line, block and thread") {
  const auto x = std::vector<u32>{5, 6, 7, 8, 9};
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    std::vector<std::string> seen;
    client.on_log([&](const LogLine& l) {
      if (!l.text.starts_with("x[")) return;
      seen.push_back(std::string(l.kernel) + " " + std::string(l.file.substr(l.file.rfind('/') + 1)) + ":" + std::to_string(l.line) + " " +
                     std::to_string(l.block[0]) + "," + std::to_string(l.thread[0]) + " " + std::string(l.text) + " " +
                     std::to_string(l.missing));
    });
    const auto in = Buffer<u32>::from_host(client, x).value();
    auto out = Buffer<u32>::zeroed(client, 4).value();
    REQUIRE(logs::two_lines({{2}, {2}}, in, out).has_value());
    CHECK(out.read().value() == std::vector<u32>{6, 7, 8, 9});
    client.on_log({});
    std::sort(seen.begin(), seen.end());
    const std::string where = "logs::two_lines log_test.cpp:30 ";
    CHECK(seen ==
          std::vector<std::string>{where + "0,0 x[0] = 5 0", where + "0,1 x[1] = 6 0", where + "1,0 x[2] = 7 0", where + "1,1 x[3] = 8 0"});
  }
}

TEST_CASE("lines of a stream come in the order of its launches, when somebody waits") {
  const auto k = kernel("launch_number", [](Val<u32> n) { log("{}", n); });
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    std::vector<Line> lines;
    const Listening listening(client, lines);
    const Stream stream = client.stream();
    for (u32 n = 0; n < 200; ++n) {  // more than there are logs
      LaunchArg arg;
      arg.type = ir::Type::U32;
      arg.bits = n;
      REQUIRE(launch(stream, {k.get(), {{1}, {1}}, {&arg, 1}, {}}).has_value());
    }
    REQUIRE(stream.sync().has_value());
    REQUIRE(lines.size() == 200);
    for (u32 n = 0; n < 200; ++n) CHECK(lines[n].text == std::to_string(n));
  }
}

TEST_CASE("a full log keeps what came first of each thread, counts the rest and says what to do; the launch does not fail, nor the next") {
  const auto k = chatty();
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    client.log_bytes(64 + 100 * 48);  // 100 records of two values
    std::vector<LogLine> missing;
    std::string said;
    std::map<std::string, std::vector<u32>> of_thread;
    client.on_log([&](const LogLine& l) {
      if (l.missing != 0) {
        missing.push_back(l);
        said = l.text;
        return;
      }
      const std::string text(l.text);
      of_thread[text.substr(text.find(" of "))].push_back(static_cast<u32>(std::stoul(text)));
    });
    launch_chatty(client, *k, 40, 10);
    CHECK(client.sync().has_value());
    std::size_t kept = 0;
    for (const auto& [thread, numbers] : of_thread) {
      kept += numbers.size();
      for (u32 n = 0; n < numbers.size(); ++n) CHECK(numbers[n] == n);
    }
    CHECK(kept == 100);
    REQUIRE(missing.size() == 1);
    CHECK(missing[0].missing == 300);
    CHECK(said ==
          "300 lines of log by kernel 'chatty' were dropped: the log of a launch has 4864 bytes, as the client's log_bytes() was told; "
          "give it more");
    // The next one fits, and is not disturbed by what was there.
    missing.clear(), of_thread.clear();
    launch_chatty(client, *k, 25, 4);
    CHECK(client.sync().has_value());
    CHECK(missing.empty());
    CHECK(of_thread.size() == 25);
    for (const auto& [thread, numbers] : of_thread) CHECK(numbers == std::vector<u32>{0, 1, 2, 3});
    // Nothing at all is kept, and all is counted.
    client.log_bytes(0);
    launch_chatty(client, *k, 1, 1);
    CHECK(client.sync().has_value());
    REQUIRE(missing.size() == 1);
    CHECK(said.starts_with("1 line of log by kernel 'chatty' was dropped"));
    client.on_log({});
    client.log_bytes(1 << 20);
  }
}

TEST_CASE("threads launch, log and wait at the same time: no line is lost, doubled or out of its stream's order") {
  const auto k = kernel("by_thread", [](Val<u32> thread, Val<u32> n) { log("{} {}", thread, n); });
  constexpr u32 kThreads = 4, kLaunches = 40;
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    std::vector<std::vector<u32>> seen(kThreads);
    std::atomic<bool> in_sink{false};
    bool overlapped = false;
    client.on_log([&](const LogLine& l) {
      overlapped = overlapped || in_sink.exchange(true);
      const std::string text(l.text);
      seen.at(std::stoul(text)).push_back(static_cast<u32>(std::stoul(text.substr(text.find(' ')))));
      in_sink = false;
    });
    std::atomic<int> failed{0};
    std::vector<std::thread> threads;
    for (u32 t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        const Stream stream = client.stream();
        for (u32 n = 0; n < kLaunches; ++n) {
          LaunchArg args[2];
          for (LaunchArg& a : args) a.type = ir::Type::U32;
          args[0].bits = t, args[1].bits = n;
          if (!launch(stream, {k.get(), {{1}, {1}}, args, {}}).has_value()) ++failed;
          if (n % 8 == t && !stream.sync().has_value()) ++failed;
        }
        if (!stream.sync().has_value()) ++failed;
      });
    for (std::thread& t : threads) t.join();
    client.on_log({});
    CHECK(failed == 0);
    CHECK_FALSE(overlapped);
    for (const std::vector<u32>& numbers : seen) {
      REQUIRE(numbers.size() == kLaunches);
      for (u32 n = 0; n < kLaunches; ++n) CHECK(numbers[n] == n);
    }
  }
}

TEST_CASE("what a launch logged before it failed is there, and the failure too") {
  const auto k = kernel("says_and_fails", [](Out<u32> y) {
    auto i = thread_id().x;
    log("before {}", i);
    y[i] = i;
    log("after {}", i);
  });
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    std::vector<Line> lines;
    const Listening listening(client, lines);
    const auto y = Buffer<u32>::zeroed(client, 2).value();
    const LaunchArg args[] = {y.arg()};
    REQUIRE(launch(client.default_stream(), {k.get(), {{1}, {3}}, args, {}}).has_value());
    CHECK_FALSE(y.read().has_value());
    CHECK(texts(lines) == std::vector<std::string>{"before 0", "after 0", "before 1", "after 1", "before 2", "after 2"});
  }
}

TEST_CASE("a sink may use the client: what that delivers comes when it has returned, before its thread goes on") {
  const auto k = kernel("one", [](Val<u32> n) { log("{}", n); });
  const auto go = [&](const Client& client, u32 n) {
    LaunchArg arg;
    arg.type = ir::Type::U32;
    arg.bits = n;
    return launch(client.default_stream(), {k.get(), {{1}, {1}}, {&arg, 1}, {}}).has_value() && client.sync().has_value();
  };
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    std::vector<std::string> seen;
    bool good = true;
    u32 next = 1;
    client.on_log([&](const LogLine& l) {
      seen.emplace_back(l.text);
      if (next < 3) good = good && go(client, next++);
      seen.emplace_back("end");
    });
    CHECK(go(client, 0));
    client.on_log({});
    CHECK(good);
    CHECK(seen == std::vector<std::string>{"0", "end", "1", "end", "2", "end"});
  }
}

TEST_CASE("a sink that replaces itself ends when it has returned, and what it holds may use the client then") {
  const auto k = kernel("once", [](Val<u32> n) { log("{}", n); });
  // Asks from another thread, so that a client that waits for itself is seen and not waited for.
  struct AtTheEnd {
    Client client;
    std::shared_ptr<std::atomic<int>> asked;
    ~AtTheEnd() {
      const auto answered = std::make_shared<std::promise<void>>();
      std::thread([answered, c = client] {
        c.log_bytes(1 << 20);
        answered->set_value();
      }).detach();
      if (answered->get_future().wait_for(std::chrono::seconds(10)) == std::future_status::ready) ++*asked;
    }
  };
  for (const Client& client : devices()) {
    CAPTURE(client.properties().name);
    const auto asked = std::make_shared<std::atomic<int>>(0);
    client.on_log([client, held = std::make_shared<AtTheEnd>(client, asked)](const LogLine&) { client.on_log({}); });
    LaunchArg arg;
    arg.type = ir::Type::U32;
    REQUIRE(launch(client.default_stream(), {k.get(), {{1}, {1}}, {&arg, 1}, {}}).has_value());
    CHECK(client.sync().has_value());
    CHECK(*asked == 1);
  }
}

TEST_CASE("a log that is not filled takes no memory of the CPU device: its size is what it may need at most") {
  if (!asked_for("cpu")) return;
  const auto resident = [] {
    std::uint64_t all = 0, pages = 0;
    std::ifstream("/proc/self/statm") >> all >> pages;
    return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
  };
  const auto k = kernel("brief", [](Val<u32> n) { log("{}", n); });
  const Client client(rt::make_server(rt::make_cpu_device({.workers = 2, .arch = {}}).value()));
  client.log_bytes(std::uint64_t{256} << 20);
  std::uint64_t lines = 0;
  client.on_log([&](const LogLine&) { ++lines; });
  LaunchArg arg;
  arg.type = ir::Type::U32;
  const auto go = [&] { return launch(client.default_stream(), {k.get(), {{1}, {8}}, {&arg, 1}, {}}).has_value(); };
  const std::uint64_t before = resident();
  for (int i = 0; i < 3; ++i) REQUIRE(go());
  CHECK(client.sync().has_value());
  CHECK(lines == 24);
  CHECK(resident() < before + (std::uint64_t{200} << 20));
  client.on_log({});
}

TEST_CASE("a kernel without a log has no parameter for one") {
  const auto without = kernel("silent", [](Out<u32> y) { y[0] = 1; });
  const auto with = kernel("says", [](Out<u32> y) {
    y[0] = 1;
    log("it");
  });
  using Kind = ir::ParamField::Kind;
  for (const auto mode : {ir::PrepareOptions::Mode::Checked, ir::PrepareOptions::Mode::Unchecked}) {
    const bool checked = mode == ir::PrepareOptions::Mode::Checked;
    const auto has = [&](const Variant& v) {
      const ir::ParamLayout layout = ir::param_layout((*v.prepared(mode))->kernel, checked);
      return std::any_of(layout.fields.begin(), layout.fields.end(), [](const ir::ParamField& f) { return f.kind == Kind::Log; });
    };
    CHECK_FALSE(has(*without));
    CHECK(has(*with));
  }
}

TEST_CASE("where a device has no memory for a log, the launch runs; its lines are counted, or it is said that they are lost") {
  if (!asked_for("sim")) return;
  const auto k = kernel("says", [](Out<u32> y) {
    y[0] = 7;
    log("it");
  });
  const struct {
    const char* script;
    const char* said;
    std::uint64_t missing;
  } rows[] = {
      {R"({"allocations": {"n": 1, "code": 2, "host": true}})",
       "1 line of log by kernel 'says' was dropped: the device had no memory for a log of 1048576 bytes", 1},
      {R"({"allocations": {"n": 1, "times": 2, "code": 2, "host": true}})",
       "the log of a launch of kernel 'says' is lost: mapped memory of 64 bytes", ~std::uint64_t{0}},
  };
  for (const auto& row : rows) {
    const Client client(make_sim_server());
    auto y = Buffer<u32>::zeroed(client, 1).value();
    CHECK(y.read().value()[0] == 0);  // memory for copies is there
    std::string said;
    std::uint64_t missing = 0;
    client.on_log([&](const LogLine& l) { said = l.text, missing = l.missing; });
    const SimScript script(row.script);
    const LaunchArg args[] = {y.arg()};
    REQUIRE(launch(client.default_stream(), {k.get(), {{1}, {1}}, args, {}}).has_value());
    CHECK(y.read().value()[0] == 7);
    CAPTURE(said);
    CHECK(said.starts_with(row.said));
    CHECK(missing == row.missing);
  }
}

TEST_CASE("that lines are lost is told in its turn: a sink that launches such a kernel again is not called inside of itself") {
  if (!asked_for("sim")) return;
  const auto k = kernel("says", [](Out<u32> y) {
    y[0] = 7;
    log("it");
  });
  const Client client(make_sim_server());
  auto y = Buffer<u32>::zeroed(client, 1).value();
  CHECK(y.read().value()[0] == 0);
  int calls = 0, depth = 0, deepest = 0;
  bool good = true;
  const LaunchArg args[] = {y.arg()};
  const auto go = [&] { return launch(client.default_stream(), {k.get(), {{1}, {1}}, args, {}}).has_value(); };
  client.on_log([&](const LogLine& l) {
    deepest = std::max(deepest, ++depth);
    good = good && l.missing != 0;
    if (++calls < 5) good = go() && good;
    --depth;
  });
  const SimScript script(R"({"allocations": {"n": 1, "times": 1000, "code": 2, "host": true}})");
  CHECK(go());
  CHECK(client.sync().has_value());
  client.on_log({});
  CHECK(good);
  CHECK(calls == 5);
  CHECK(deepest == 1);
}
