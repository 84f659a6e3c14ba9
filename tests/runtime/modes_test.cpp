// Process, stream and launch modes: which launches run, what is refused, and that a dropped launch leaves everything as it was.
#include "kiln/runtime/modes.h"

#include <doctest/doctest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "runtime/mode_devices.h"
#include "support/allocations.h"

using namespace kiln;
using namespace kiln::test;

namespace {

bool says(const Error& error, const std::string& what) { return error.text().find(what) != std::string::npos; }
ProcessModeOverride in_mode(ProcessMode mode) { return ProcessModeOverride::open(mode).value(); }

}  // namespace

TEST_CASE("what a launch does follows from the mode of the process and that of its stream") {
  const struct {
    ProcessMode process;
    StreamMode ordinary;  // of a stream that is not overridden
    LaunchMode on_execute, on_discard;
  } rows[] = {
      {ProcessMode::Execute, StreamMode::Execute, LaunchMode::Execute, LaunchMode::Queue},
      {ProcessMode::CompileOnly, StreamMode::Discard, LaunchMode::Execute, LaunchMode::Queue},
      {ProcessMode::CompileAndAutotune, StreamMode::Discard, LaunchMode::Execute, LaunchMode::Compile},
  };
  for (const bool simulated : {false, true}) {
    const auto device = mode_device(simulated);
    for (const auto& row : rows) {
      CAPTURE(name(row.process));
      CHECK(launch_mode(row.process, StreamMode::Execute) == row.on_execute);
      CHECK(launch_mode(row.process, StreamMode::Discard) == row.on_discard);
      const Stream stream = device->client.stream(), other = device->client.stream();
      const auto process = in_mode(row.process);
      CHECK(process_mode() == row.process);
      CHECK(stream_mode(stream) == row.ordinary);
      CHECK(launch_mode(stream) == launch_mode(row.process, row.ordinary));
      for (const StreamMode mode : {StreamMode::Execute, StreamMode::Discard}) {
        const StreamModeOverride of_stream(stream, mode);
        CHECK(stream_mode(stream) == mode);
        CHECK(launch_mode(stream) == launch_mode(row.process, mode));
        CHECK(stream_mode(other) == row.ordinary);
        Buffer<u32> y = Buffer<u32>::from_host(device->client, {5}).value();
        const auto kernel = writes("k_" + std::string(name(row.process)) + name(mode), 9);
        const int before = device->compiler.compilations.load();
        REQUIRE(go(stream, *kernel, y).has_value());
        const LaunchMode now = launch_mode(stream);
        CHECK(device->compiler.compilations.load() - before == (now == LaunchMode::Queue ? 0 : 1));
        CHECK(y.read().value() == std::vector<u32>{now == LaunchMode::Execute ? 9u : 5u});
        REQUIRE(compile_queued(device->client).has_value());
        CHECK(device->compiler.compilations.load() - before == 1);
      }
    }
  }
  CHECK(process_mode() == ProcessMode::Execute);
  CHECK_FALSE(drops_launch(LaunchMode::Execute));
  CHECK(drops_launch(LaunchMode::Compile));
  CHECK(drops_launch(LaunchMode::Queue));
}

TEST_CASE("twelve kernels launched under CompileOnly leave their outputs as they were; launched again they write n * 3 + 1") {
  for (const bool simulated : {false, true}) {
    const auto device = mode_device(simulated);
    CAPTURE(device->name);
    std::vector<std::shared_ptr<const Variant>> kernels;
    std::vector<Buffer<u32>> outputs;
    for (u32 n = 0; n < 12; ++n) {
      kernels.push_back(writes("affine" + std::to_string(n), n * 3 + 1));
      outputs.push_back(Buffer<u32>::zeroed(device->client, 1).value());
    }
    const Stream stream = device->client.stream();
    {
      const auto pass = in_mode(ProcessMode::CompileOnly);
      for (u32 n = 0; n < 12; ++n) CHECK(go(stream, *kernels[n], outputs[n]).has_value());
      CHECK(stream.flush().has_value());
      CHECK(device->compiler.compilations.load() == 0);  // flushing compiles nothing
      CHECK(stream.sync().has_value());
      CHECK(device->compiler.compilations.load() == 0);  // nor does waiting
      for (u32 n = 0; n < 12; ++n) CHECK(outputs[n].read().value() == std::vector<u32>{0});
    }
    CHECK(device->compiler.compilations.load() == 12);  // by the end of the last override
    for (u32 n = 0; n < 12; ++n) CHECK(go(stream, *kernels[n], outputs[n]).has_value());
    for (u32 n = 0; n < 12; ++n) CHECK(outputs[n].read().value() == std::vector<u32>{n * 3 + 1});
    CHECK(device->compiler.compilations.load() == 12);
  }
}

TEST_CASE("overrides of one mode and one collector nest; any other is refused and changes nothing") {
  const StatisticsCollector collector, another;
  auto outer = std::optional(ProcessModeOverride::open(ProcessMode::CompileOnly, collector).value());
  auto inner = std::optional(ProcessModeOverride::open(ProcessMode::CompileOnly, collector).value());
  auto joined = std::optional(ProcessModeOverride::open(ProcessMode::CompileOnly).value());  // counts to that collector, too
  const struct {
    ProcessMode mode;
    std::optional<StatisticsCollector> collector;
    const char* text;
  } rows[] = {
      {ProcessMode::Execute, collector, "an override of the process mode Execute cannot open while one of CompileOnly is open"},
      {ProcessMode::CompileAndAutotune, {}, "CompileAndAutotune cannot open while one of CompileOnly is open"},
      {ProcessMode::CompileOnly, another, "with this collector while one with another is open"},
  };
  for (const auto& row : rows) {
    const auto refused = ProcessModeOverride::open(row.mode, row.collector);
    REQUIRE_FALSE(refused.has_value());
    CHECK(refused.error().code() == ErrorCode::Validation);
    CHECK(refused.error().rule() == "ModeConflict");
    CHECK_MESSAGE(says(refused.error(), row.text), refused.error().text());
    CHECK(process_mode() == ProcessMode::CompileOnly);
  }
  outer.reset();  // in any order
  CHECK(process_mode() == ProcessMode::CompileOnly);
  joined.reset();
  CHECK(process_mode() == ProcessMode::CompileOnly);
  inner.reset();
  CHECK(process_mode() == ProcessMode::Execute);
  {
    const auto without = in_mode(ProcessMode::CompileOnly);
    const auto refused = ProcessModeOverride::open(ProcessMode::CompileOnly, collector);
    REQUIRE_FALSE(refused.has_value());
    CHECK(says(refused.error(), "while one with none is open"));
  }
  CHECK(ProcessModeOverride::open(ProcessMode::CompileAndAutotune, another).has_value());  // and gone again
  CHECK(process_mode() == ProcessMode::Execute);
}

TEST_CASE("an override that was moved from closes nothing, and one that is assigned to closes its own") {
  auto first = in_mode(ProcessMode::CompileOnly);
  {
    auto second = std::move(first);
    CHECK(process_mode() == ProcessMode::CompileOnly);
    second.close();
    second.close();
    CHECK(process_mode() == ProcessMode::Execute);
  }
  const auto device = mode_device(false);
  const Stream stream = device->client.stream();
  StreamModeOverride a(stream, StreamMode::Discard);
  StreamModeOverride b(std::move(a));
  a.close();
  CHECK(stream_mode(stream) == StreamMode::Discard);
  b = StreamModeOverride(stream, StreamMode::Execute);
  CHECK(stream_mode(stream) == StreamMode::Execute);
  b.close();
  CHECK(stream_mode(stream) == StreamMode::Execute);
  CHECK(launch_mode(stream) == LaunchMode::Execute);
}

TEST_CASE("of the overrides of a stream the newest holds, in whatever order they go, and other streams and devices have none of it") {
  const auto device = mode_device(false), elsewhere = mode_device(false);
  const Stream stream = device->client.stream(), other = device->client.stream(), same_number(elsewhere->client, stream.id());
  auto first = std::optional<StreamModeOverride>(std::in_place, stream, StreamMode::Discard);
  auto second = std::optional<StreamModeOverride>(std::in_place, stream, StreamMode::Execute);
  auto third = std::optional<StreamModeOverride>(std::in_place, stream, StreamMode::Discard);
  CHECK(stream_mode(stream) == StreamMode::Discard);
  second.reset();
  CHECK(stream_mode(stream) == StreamMode::Discard);
  third.reset();
  CHECK(stream_mode(stream) == StreamMode::Discard);  // the first
  CHECK(stream_mode(other) == StreamMode::Execute);
  CHECK(stream_mode(same_number) == StreamMode::Execute);
  second.emplace(stream, StreamMode::Execute);
  first.reset();
  CHECK(stream_mode(stream) == StreamMode::Execute);
  second.reset();
  CHECK(stream_mode(stream) == StreamMode::Execute);
}

TEST_CASE("a dropped launch claims nothing, whatever is wrong with it, and a real one still does") {
  for (const bool simulated : {false, true}) {
    const auto device = mode_device(simulated);
    CAPTURE(device->name);
    const Stream stream = device->client.stream();
    Buffer<u32> y = Buffer<u32>::from_host(device->client, {1, 2, 3}).value();
    const auto good = writes("good", 8), bad = writes("bad", 8);
    const auto launch_wrongly = [&] {
      const LaunchArg args[] = {y.arg()};
      LaunchRequest request{good.get(), {}, args};
      request.config.block = Dim3(0);
      return launch(stream, request);
    };
    for (const ProcessMode mode : {ProcessMode::CompileOnly, ProcessMode::CompileAndAutotune}) {
      const auto pass = in_mode(mode);
      const auto wrong = launch_wrongly();
      REQUIRE_FALSE(wrong.has_value());
      CHECK(wrong.error().rule() == "ZeroDimension");
      const auto failed = go(stream, *bad, y);
      CHECK(failed.has_value() == (mode == ProcessMode::CompileOnly));  // that is kept; with the other mode it is told, too
      if (!failed.has_value()) CHECK(failed.error().code() == ErrorCode::CompileUnsupported);
      CHECK(y.read().value() == std::vector<u32>{1, 2, 3});
    }
    CHECK_FALSE(launch_wrongly().has_value());
    CHECK_FALSE(y.read().has_value());
  }
}

TEST_CASE("a claimed input stays claimed, and is no reason to refuse a launch that does not run") {
  const auto device = mode_device(false);
  const Stream stream = device->client.stream();
  Buffer<u32> y = Buffer<u32>::from_host(device->client, {1}).value();
  CHECK_FALSE(go(stream, *writes("bad", 1), y).has_value());
  {
    const auto pass = in_mode(ProcessMode::CompileAndAutotune);
    CHECK(go(stream, *writes("good", 1), y).has_value());
  }
  CHECK_FALSE(y.read().has_value());
}

TEST_CASE("launches on a stream that executes, and dropped ones of kernels that are known, allocate nothing") {
  if (!allocations_counted()) return;
  const auto device = mode_device(false);
  const Stream stream = device->client.stream(), measured = device->client.stream();
  Buffer<u32> y = Buffer<u32>::zeroed(device->client, 1).value();
  const auto kernel = writes("steady", 3), queued = writes("steady_queued", 3);
  const auto pass = in_mode(ProcessMode::CompileOnly);
  const StreamModeOverride execute(measured, StreamMode::Execute);
  bool good = true;
  const auto round = [&] {
    good = go(measured, *kernel, y).has_value() && go(stream, *kernel, y).has_value() && go(stream, *queued, y).has_value() && good;
  };
  for (int i = 0; i < 200; ++i) round();
  REQUIRE(device->client.sync().has_value());
  const std::uint64_t before = allocations();
  for (int i = 0; i < 100; ++i) round();
  const std::uint64_t after = allocations();
  CHECK(after == before);
  CHECK(good);
}
