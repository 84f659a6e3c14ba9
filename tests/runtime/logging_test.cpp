// What the runtime says of itself: levels by area, into the file that is named.
#include "src/logging.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "kiln/runtime/graph.h"
#include "kiln/runtime/prepared.h"
#include "kiln/runtime/profile.h"
#include "runtime/fake_kernels.h"
#include "runtime/mode_devices.h"
#include "support/process.h"

using namespace kiln;
using namespace kiln::test;
using rt::LogArea;
using rt::LogLevel;

namespace {

// The log into a file of its own while one lives.
class LogTo {
 public:
  explicit LogTo(const std::string& levels) : path_(folder_.file("kiln.log")) { REQUIRE(rt::set_up_logging(levels, path_).has_value()); }
  ~LogTo() { (void)rt::set_up_logging("warning", "stderr"); }
  std::string text() const { return read_file(path_); }
  std::size_t lines(const std::string& with) const {
    const std::string all = text();
    std::size_t n = 0;
    for (std::size_t at = all.find(with); at != std::string::npos; at = all.find(with, at + 1)) ++n;
    return n;
  }

 private:
  TempFolder folder_;
  std::string path_;
};

}  // namespace

TEST_CASE("levels are one for all areas and others for some, and everything else is no level") {
  const auto levels = [](const char* text) { return rt::parse_log_levels(text); };
  const auto at = [](const rt::LogLevels& all, LogArea area) { return all[static_cast<std::size_t>(area)]; };
  REQUIRE(levels("off,compile=info,failure=debug"));
  CHECK(at(*levels("off,compile=info"), LogArea::Compile) == LogLevel::Info);
  CHECK(at(*levels("off,compile=info"), LogArea::Launch) == LogLevel::Off);
  CHECK(at(*levels("compile=info,error"), LogArea::Stream) == LogLevel::Error);
  CHECK(at(*levels("compile=info"), LogArea::Stream) == LogLevel::Warning);  // as ever
  CHECK(at(*levels("debug"), LogArea::Profile) == LogLevel::Debug);
  for (const char* text : {"", "loud", "compile", "compile=", "=info", "compile=loud", "compiler=info", "info,", ",info", "info,debug",
                           "compile=info,compile=off", "INFO", " info", "compile=info=off"})
    CHECK_MESSAGE(!levels(text), text);
}

TEST_CASE("by default nothing is said but warnings") {
  for (std::size_t i = 0; i < rt::kLogAreas; ++i) {
    CHECK(rt::logs(static_cast<LogArea>(i), LogLevel::Warning));
    CHECK_FALSE(rt::logs(static_cast<LogArea>(i), LogLevel::Info));
  }
}

TEST_CASE("each area says what its level asks for, and no other does") {
  const struct {
    const char* levels;
    const char* line;
    std::size_t lines;  // at least
  } rows[] = {
      {"off,launch=debug", "kiln launch debug: ", 3},
      {"off,compile=info", "kiln compile info: kernel 'fill' compiled for ", 1},
      {"off,compile=debug", "kiln compile debug: kernel 'queued' is queued", 1},
      {"off,memory=debug", "kiln memory debug: ", 2},
      {"off,stream=debug", "waited for all streams", 1},
      {"off,failure=info", "kiln failure info: ", 1},
      {"off,capture=info", "kiln capture info: ", 2},
      {"off,capture=debug", "kiln capture debug: ", 4},
      {"off,profile=debug", "kiln profile debug: ", 4},
      {"off,profile=info", "kiln profile info: timeline ", 2},
  };
  for (const auto& row : rows) {
    CAPTURE(row.levels);
    const LogTo log(row.levels);
    {
      FakeServer s(1);
      s.compiler.define("queued", fill_code);
      const Variant queued(fill_ir("queued"));
      Buffer<u32> x = s.buffer({1, 2}), y = s.buffer({1, 2});
      CHECK(run(s.client.default_stream(), s.fill, x.arg(), scalar(1)).has_value());
      CHECK_FALSE(run(s.client.default_stream(), s.broken, x.arg(), y.arg()).has_value());
      const StreamModeOverride discard(s.client.default_stream(), StreamMode::Discard);
      CHECK(run(s.client.default_stream(), queued, x.arg(), scalar(1)).has_value());
      CHECK(s.client.default_stream().sync().has_value());
      CHECK(s.client.sync().has_value());
      const Stream stream = s.client.stream();
      const Graph graph = capture(stream, [&] { CHECK(run(stream, s.fill, x.arg(), scalar(2)).has_value()); }).value();
      CHECK(graph.replay(stream).has_value());
      CHECK_FALSE(capture(stream, [&] { CHECK_FALSE(run(stream, s.broken, x.arg(), y.arg()).has_value()); }).has_value());
      { const auto dropped = GraphCapture::prepare(stream).value(); }
      CHECK(profile(stream, [&] { return run(stream, s.fill, x.arg(), scalar(3)); }).has_value());
      CHECK(abandon_profile(stream, start_profile_at_launch(stream).value()).has_value());
      CHECK(Timeline::start().value().finish().has_value());
    }
    CHECK_MESSAGE(log.lines(row.line) >= row.lines, log.text());
    const std::string area = std::string(row.levels).substr(4, std::string(row.levels).find('=') - 4);
    CHECK_MESSAGE(log.lines("kiln ") == log.lines("kiln " + area + " "), log.text());
  }
}

TEST_CASE("a launch's line says whether it was enqueued, dropped or failed") {
  const LogTo log("off,launch=debug");
  FakeServer s(1);
  Buffer<u32> x = s.buffer({1, 2}), y = s.buffer({1, 2});
  const Stream stream = s.client.stream();
  CHECK(run(stream, s.fill, x.arg(), scalar(1)).has_value());
  CHECK_FALSE(run(stream, s.broken, x.arg(), y.arg()).has_value());
  const StreamModeOverride discard(stream, StreamMode::Discard);
  CHECK(run(stream, s.fill, x.arg(), scalar(1)).has_value());
  const std::string text = log.text(), on = " on stream " + std::to_string(stream.id()) + ", grid (2, 1, 1), block (1, 1, 1): ";
  CHECK_MESSAGE(text.find("kernel 'fill'" + on + "enqueued\n") != std::string::npos, text);
  CHECK_MESSAGE(text.find("kernel 'broken'" + on + "CompileUnsupported\n") != std::string::npos, text);
  CHECK_MESSAGE(text.find("kernel 'fill'" + on + "dropped\n") != std::string::npos, text);
}

TEST_CASE("the line of a launch has the grid and the block that were launched, whoever chose them, and else what was asked for") {
  const LogTo log("off,launch=debug");
  FakeServer s(1);
  Buffer<u32> x = s.buffer(std::vector<u32>(1000, 1)), counts = s.buffer({2, 1, 1});
  const Stream stream = s.client.stream();
  const LaunchArg args[] = {x.arg(), scalar(1)};
  LaunchRequest request{&s.fill, automatic(1000), args};
  const std::string on = "kernel 'fill' on stream " + std::to_string(stream.id()) + ", ";
  CHECK(launch(stream, request).has_value());
  CHECK_MESSAGE(log.lines(on + "grid (4, 1, 1), block (256, 1, 1): enqueued\n") == 1, log.text());
  CHECK(PreparedLaunch::prepare(stream, request).value()().has_value());
  CHECK_MESSAGE(log.lines(on + "grid (4, 1, 1), block (256, 1, 1): enqueued\n") == 2, log.text());
  const Binding grid = counts.binding();
  request.config = {{1}, {32}};
  request.dynamic_grid = &grid;
  CHECK(launch(stream, request).has_value());
  CHECK_MESSAGE(log.lines(on + "grid from the device, block (32, 1, 1): enqueued\n") == 1, log.text());
  request.config = automatic(1000);
  request.dynamic_grid = nullptr;
  const StreamModeOverride discard(stream, StreamMode::Discard);
  CHECK(launch(stream, request).has_value());
  CHECK_MESSAGE(log.lines(on + "automatic(1000): dropped\n") == 1, log.text());
}

TEST_CASE("a stream with a priority goes by a small number and its priority, in the log and in the timeline") {
  const LogTo log("off,launch=debug,stream=debug");
  FakeServer s(1);
  Buffer<u32> x = s.buffer({1, 2});
  Timeline timeline = Timeline::start().value();
  std::vector<std::string> names;
  for (const StreamPriority priority : {StreamPriority::High, StreamPriority::Low, StreamPriority::Normal}) {
    const Stream stream = s.client.stream(priority);
    REQUIRE(run(stream, s.fill, x.arg(), scalar(1)).has_value());
    REQUIRE(stream.sync().has_value());
    const std::string number = std::to_string(stream.id() & ~(std::uint64_t{3} << 61));
    CHECK(number.size() < 6);
    names.push_back("stream " + number + (priority == StreamPriority::High ? " (high)" : priority == StreamPriority::Low ? " (low)" : ""));
  }
  const Trace trace = timeline.finish().value();
  for (const std::string& name : names) {
    CHECK_MESSAGE(log.lines("kernel 'fill' on " + name + ", grid ") == 1, log.text());
    CHECK_MESSAGE(log.lines("waited for " + name + "\n") == 1, log.text());
    CHECK_MESSAGE(trace.json.find("\"thread_name\"") != std::string::npos, trace.json);
    CHECK_MESSAGE(trace.json.find("{\"name\":\"" + name + "\"}") != std::string::npos, trace.json);
  }
}

TEST_CASE("no folder is made for a log") {
  const TempFolder folder;
  const std::string inside = folder.file("none");
  const Result<void> set = rt::set_up_logging("warning", inside + "/kiln.log");
  REQUIRE_FALSE(set.has_value());
  CHECK(set.error().rule() == "Configuration");
  CHECK(set.error().text().find("KILN_LOG_FILE") != std::string::npos);
  CHECK(set.error().text().find("there is no folder for '" + inside) != std::string::npos);
  CHECK_FALSE(std::filesystem::exists(inside));
}

TEST_CASE("the log of captures has where a graph comes from, why there is none, and what became of each replay") {
  const LogTo log("off,capture=debug");
  FakeServer s(1);
  Buffer<u32> x = s.buffer({1, 2}), y = s.buffer({1, 2});
  const Stream stream = s.client.stream();
  const std::string label = s.client.server().label() + ": ", on = "stream " + std::to_string(stream.id());
  const unsigned line = __LINE__ + 1;
  const Graph graph = capture(stream, [&] { CHECK(run(stream, s.fill, x.arg(), scalar(2)).has_value()); }).value();
  CHECK(graph.replay(stream).has_value());
  {
    const StreamModeOverride discards(stream, StreamMode::Discard);
    CHECK(graph.replay(stream).has_value());
  }
  CHECK(graph.destroy().has_value());
  CHECK_FALSE(graph.replay(stream).has_value());
  CHECK_FALSE(capture(stream, [&] { CHECK_FALSE(run(stream, s.broken, x.arg(), y.arg()).has_value()); }).has_value());
  { const auto dropped = GraphCapture::prepare(stream).value(); }
  const std::string text = log.text();
  CHECK_MESSAGE(log.lines("debug: " + label + "the capture of " + on + " was prepared\n") == 3, text);
  CHECK_MESSAGE(log.lines("debug: " + label + "the capture of " + on + " was begun\n") == 2, text);
  CHECK_MESSAGE(log.lines("debug: " + label + "the capture of " + on + " was dropped\n") == 1, text);
  CHECK_MESSAGE(log.lines("info: " + label + "graph 1, captured on " + on + " at ") == 1, text);
  CHECK_MESSAGE(log.lines("logging_test.cpp:" + std::to_string(line) + ": 1 operations, a graph of fill\n") == 1, text);
  CHECK_MESSAGE(log.lines("info: " + label + "the capture of " + on + " gave no graph: ") == 1, text);
  for (const char* what : {"enqueued", "dropped", "Validation"})
    CHECK_MESSAGE(log.lines("debug: " + label + "replay of graph 1 on " + on + ": " + what + "\n") == 1, text);
}

TEST_CASE("the log of profiles has each window with its time or what it came to") {
  const LogTo log("off,profile=debug");
  FakeServer s(1);
  Buffer<u32> x = s.buffer({1, 2});
  const Stream stream = s.client.stream();
  const ProfileToken timed = start_profile(stream).value(), empty = start_profile_at_launch(stream).value(),
                     dropped = start_profile(stream).value();
  CHECK_FALSE(end_profile(stream, empty).has_value());
  CHECK(run(stream, s.fill, x.arg(), scalar(2)).has_value());
  const auto time = end_profile(stream, timed).value();
  CHECK(abandon_profile(stream, dropped).has_value());
  const auto window = [&](const ProfileToken& token, const std::string& what) {
    return log.lines("debug: " + s.client.server().label() + ": profile window " + std::to_string(token.number) + " on stream " +
                     std::to_string(stream.id()) + ": " + what + "\n");
  };
  CHECK(window(timed, "opened") == 1);
  CHECK(window(empty, "opens at launch") == 1);
  CHECK(window(empty, "ended, NotMeasured") == 1);
  CHECK_MESSAGE(window(timed, "ended, " + std::to_string(time.count()) + " ns") == 1, log.text());
  CHECK(window(dropped, "abandoned") == 1);
}

TEST_CASE("the loss of a device is a warning, once") {
  const LogTo log("warning");
  {
    const auto device = mode_device(true);
    const SimScript script(R"({"calls": [{"name": "cuMemAlloc", "code": "CUDA_ERROR_ILLEGAL_ADDRESS", "sticky": true}]})");
    for (int i = 0; i < 3; ++i) CHECK_FALSE(Buffer<u32>::zeroed(device->client, 1 << 22).has_value());
    CHECK_FALSE(device->client.sync().has_value());
  }
  renew_sim();
  CHECK_MESSAGE(log.lines("kiln failure warning: ") == 1, log.text());
  CHECK(log.text().find("the device is lost to this process: ") != std::string::npos);
}

TEST_CASE("a line is written as it is, at once") {
  const LogTo log("off,stream=debug");
  rt::say(LogArea::Stream, LogLevel::Debug, "braces {} are no places");
  CHECK(log.lines("kiln stream debug: braces {} are no places\n") == 1);
}
