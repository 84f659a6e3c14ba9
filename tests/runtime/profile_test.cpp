// Profile windows, the timeline and ranges for profilers of others.
// clang-format off
#include <nlohmann/json.hpp>  // before the language's words
// clang-format on

#include "kiln/runtime/profile.h"

#include <doctest/doctest.h>
#include <kiln/kiln.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/nvtx.h"
#include "kiln/runtime/operation.h"
#include "runtime/fake_kernels.h"
#include "support/each_client.h"
#include "support/process.h"
#include "support/sim.h"

using namespace kiln;
using namespace kiln::test;
using std::chrono::nanoseconds;

namespace profiled {

KILN_KERNEL(spin, (InOut<u32> x, Val<u32> rounds))
{
  auto i = global_id().x;
  If (i < x.size()) {
    Var<u32> v = x[i];
    for (auto r : range(rounds)) { v = v * 1664525u + 1013904223u + r; }
    x[i] = v;
  }
}
KILN_KERNEL(never, (In<u32> in, Out<u32> out))
{
  If (in[thread_id().x] > 0) { barrier(); }
  out[thread_id().x] = 1;
}
KILN_KERNEL(out_of_range, (Out<u32> out))
{ out[out.size() + thread_id().x] = 1; }
KILN_KERNEL(copied, (In<u32> in, Out<u32> out))
{
  auto i = global_id().x;
  If (i < out.size() && i < in.size()) { out[i] = in[i]; }
}

}  // namespace profiled

namespace {

Buffer<u32> made(const Client& client, std::vector<u32> values) { return Buffer<u32>::from_host(client, values).value(); }
ErrorCode code(const Result<nanoseconds>& r) { return r.has_value() ? ErrorCode::Generic : r.error().code(); }

// What a trace has, checked for what every trace must be: times that are none before the start, tracks whose slices do not overlap.
struct Slice {
  std::string name, source, kind;
  nlohmann::json args;
  double begin, end;
  int process, track;
};
struct Parsed {
  std::vector<Slice> slices;
  std::map<int, std::string> processes;
  std::map<std::pair<int, int>, std::string> tracks;
  std::string dropped;
  std::vector<Slice> of(const std::string& kind) const {
    std::vector<Slice> found;
    for (const Slice& s : slices)
      if (s.kind == kind) found.push_back(s);
    return found;
  }
};
Parsed parse(const std::string& text) {
  Parsed p;
  const nlohmann::json json = nlohmann::json::parse(text);
  p.dropped = json.at("otherData").at("dropped");
  for (const auto& event : json.at("traceEvents")) {
    const int process = event.at("pid"), track = event.at("tid");
    if (event.at("ph") == "M") {
      if (event.at("name") == "process_name") CHECK(p.processes.emplace(process, event.at("args").at("name")).second);
      else CHECK(p.tracks.emplace(std::pair(process, track), event.at("args").at("name")).second);
      continue;
    }
    CHECK(event.at("ph") == "X");
    const double begin = event.at("ts"), length = event.at("dur");
    CHECK(begin >= 0);
    CHECK(length >= 0);
    p.slices.push_back(
        {event.at("name"), event.at("args").value("source", ""), event.at("cat"), event.at("args"), begin, begin + length, process, track});
  }
  std::map<std::pair<int, int>, double> over;
  for (const Slice& s : p.slices) {
    if (s.process == 0) continue;  // the host's nest
    double& end = over[{s.process, s.track}];
    CHECK(s.begin >= end - 0.0011);  // in their order, none within another
    end = s.end;
    CHECK(p.processes.contains(s.process));
    CHECK(p.tracks.contains({s.process, s.track}));
  }
  return p;
}

}  // namespace

// --- windows ---------------------------------------------------------------------------------------------------------------------

TEST_CASE("a window measures the work of its stream: above 0, and one around others at least their sum") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(64, 1));
  const auto spin = [&](u32 rounds) { REQUIRE(profiled::spin(stream, for_num_elems(64), x, rounds).has_value()); };
  spin(1);  // compiled before
  REQUIRE(stream.sync().has_value());

  const ProfileToken outer = start_profile(stream).value(), first = start_profile(stream).value();
  spin(2000);
  const nanoseconds one = end_profile(stream, first).value();
  const ProfileToken second = start_profile_at_launch(stream).value();
  spin(2000);
  spin(2000);
  const nanoseconds two = end_profile(stream, second).value();
  const nanoseconds all = end_profile(stream, outer).value();
  CHECK(one.count() > 0);
  CHECK(two.count() > 0);
  CHECK(all >= one + two);
  CHECK(all < std::chrono::hours(1));
}

TEST_CASE("a window over many launches has the time of one over the last of them") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(32, 1));
  const auto launches = [&](int n) {
    for (int i = 0; i < n; ++i) (void)profiled::spin(stream, {{1}, {32}}, x, 20u);
  };
  const ProfileToken all = start_profile(stream).value();
  launches(300);
  const ProfileToken last = start_profile(stream).value();
  launches(20);
  const nanoseconds few = end_profile(stream, last).value();
  CHECK(end_profile(stream, all).value() > few);
}

TEST_CASE("a window of a launch that fails, is skipped, is refused or faults late ends with its error, and all that were open then") {
  for (const Client& client : clients())
    for (const std::string how : {"no code", "skipped", "refused", "late", "on claimed bytes"}) {
      CAPTURE(client.properties().name);
      CAPTURE(how);
      const Stream stream = client.stream();
      Buffer<u32> in = made(client, std::vector<u32>(64, 1)), out = made(client, std::vector<u32>(64, 2)),
                  x = made(client, std::vector<u32>(64, 3));
      const ProfileToken outer = start_profile(stream).value(), inner = start_profile(stream).value(),
                         waiting = start_profile_at_launch(stream).value();
      ErrorCode expected = ErrorCode::Generic;
      if (how == "no code") {
        CHECK_FALSE(profiled::never(stream, for_num_elems(64), in, out).has_value());
        expected = ErrorCode::CompileValidation;
      }
      if (how == "skipped") {
        (void)profiled::never(client.stream(), for_num_elems(64), in, out);
        CHECK_FALSE(profiled::copied(stream, for_num_elems(64), out, x).has_value());
        expected = ErrorCode::Skipped;
      }
      if (how == "refused") {
        CHECK_FALSE(profiled::copied(stream, {{1}, {0}}, in, out).has_value());
        expected = ErrorCode::Validation;
      }
      if (how == "late") {
        REQUIRE(profiled::out_of_range(stream, {{1}, {1}}, out).has_value());
        expected = ErrorCode::Bounds;
      }
      if (how == "on claimed bytes") {
        REQUIRE(profiled::out_of_range(client.stream(), {{1}, {1}}, out).has_value());
        const auto launched = profiled::copied(stream, for_num_elems(64), out, x);
        expected = launched.has_value() ? ErrorCode::Bounds : ErrorCode::Skipped;
      }
      Buffer<u32> last = made(client, std::vector<u32>(64, 0));
      REQUIRE(profiled::copied(stream, for_num_elems(64), in, last).has_value());  // a good one behind it changes nothing
      CHECK(code(end_profile(stream, inner)) == expected);
      const ProfileToken after = start_profile(stream).value();
      REQUIRE(profiled::spin(stream, for_num_elems(64), in, 10u).has_value());
      CHECK(end_profile(stream, after).has_value());  // one that was opened behind it is well
      CHECK(code(end_profile(stream, waiting)) == expected);
      CHECK(code(end_profile(stream, outer)) == expected);
    }
}

TEST_CASE("a window of a replay that is skipped, refused, faults late or is dropped ends with that, never with zero") {
  for (const Client& client : clients())
    for (const std::string how : {"skipped", "no graph", "destroyed", "of another device", "late", "dropped", "well"}) {
      CAPTURE(client.properties().name);
      CAPTURE(how);
      const Stream stream = client.stream();
      Buffer<u32> in = made(client, std::vector<u32>(64, 1)), out = made(client, std::vector<u32>(64, 2));
      FakeServer elsewhere;
      Graph graph = capture(stream, [&] {
                      if (how == "late") profiled::out_of_range(stream, {{1}, {1}}, out).value();
                      else profiled::copied(stream, for_num_elems(64), in, out).value();
                    }).value();
      ErrorCode expected = ErrorCode::Generic;
      if (how == "skipped") {
        rt::claim(in.binding(), Error(ErrorCode::LaunchUnknown, "it failed"));
        expected = ErrorCode::Skipped;
      }
      if (how == "no graph") {
        graph = Graph();
        expected = ErrorCode::Validation;
      }
      if (how == "destroyed") {
        CHECK(graph.destroy().has_value());
        expected = ErrorCode::Validation;
      }
      if (how == "of another device") {
        graph = capture(elsewhere.client.stream(), [] {}).value();
        expected = ErrorCode::ForeignHandle;
      }
      if (how == "late") expected = ErrorCode::Bounds;
      if (how == "dropped") expected = ErrorCode::NotMeasured;
      const ProfileToken outer = start_profile(stream).value(), waiting = start_profile_at_launch(stream).value();
      if (how == "dropped") {
        const StreamModeOverride discards(stream, StreamMode::Discard);
        CHECK(graph.replay(stream).has_value());
      } else {
        CHECK(graph.replay(stream).has_value() == (how == "well" || how == "late"));
      }
      const auto late = end_profile(stream, waiting), all = end_profile(stream, outer);
      if (how == "well") {
        CHECK(late.value().count() > 0);
        CHECK(all.value() >= late.value());
      } else {
        CHECK(code(late) == expected);
        if (how != "dropped") CHECK(code(all) == expected);  // it had time, and no launch failed
      }
    }
}

TEST_CASE("failures before a window, behind it and on other streams are none of its own") {
  const Client client = each_client();
  const Stream stream = client.stream(), other = client.stream();
  Buffer<u32> in = made(client, std::vector<u32>(64, 1)), out = made(client, std::vector<u32>(64, 2));
  REQUIRE(profiled::out_of_range(stream, {{1}, {1}}, out).has_value());
  const ProfileToken window = start_profile(stream).value();
  REQUIRE(profiled::spin(stream, for_num_elems(64), in, 10u).has_value());
  (void)profiled::never(other, for_num_elems(64), in, out);
  REQUIRE(profiled::out_of_range(other, {{1}, {1}}, out).has_value());
  CHECK(end_profile(stream, window).has_value());
  CHECK_FALSE(out.read().has_value());
}

TEST_CASE("what was not timed is an error and no zero; an unknown window is another") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(64, 1));
  const ProfileToken empty = start_profile_at_launch(stream).value();
  CHECK(x.read().has_value());  // no launch
  const auto nothing = end_profile(stream, empty);
  CHECK(code(nothing) == ErrorCode::NotMeasured);
  CHECK(nothing.error().rule() == "NotMeasured");
  const ProfileToken idle = start_profile(stream).value();
  const auto time = end_profile(stream, idle);
  if (time.has_value()) CHECK(time->count() > 0);
  else CHECK(time.error().code() == ErrorCode::NotMeasured);
  CHECK(code(end_profile(stream, idle)) == ErrorCode::NotRegistered);  // twice
  CHECK(code(end_profile(stream, ProfileToken{})) == ErrorCode::NotRegistered);
  CHECK(code(end_profile(stream, ProfileToken{~std::uint64_t{0}})) == ErrorCode::NotRegistered);
  const ProfileToken dropped = start_profile(stream).value();
  CHECK(abandon_profile(stream, dropped).has_value());
  CHECK(abandon_profile(stream, dropped).error().code() == ErrorCode::NotRegistered);
  CHECK(code(end_profile(stream, dropped)) == ErrorCode::NotRegistered);
  FakeServer other;
  const ProfileToken foreign = start_profile(other.client.stream()).value();
  CHECK(code(end_profile(stream, foreign)) == ErrorCode::NotRegistered);
}

TEST_CASE("a window ends in any order, with a throwing or failing body, and from another thread") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(64, 1));
  const ProfileToken a = start_profile(stream).value(), b = start_profile(stream).value();
  REQUIRE(profiled::spin(stream, for_num_elems(64), x, 10u).has_value());
  CHECK(end_profile(stream, a).has_value());
  Result<nanoseconds> late = nanoseconds(0);
  std::jthread([&] { late = end_profile(stream, b); }).join();
  CHECK(late.has_value());
  CHECK_THROWS_AS((void)profile(stream, [] { throw 3; }), int);
  CHECK(profile(stream, [&] { return profiled::spin(stream, {{1}, {0}}, x, 1u); }).error().rule() == "ZeroDimension");
  CHECK(profile(stream, [&] { return profiled::spin(stream, for_num_elems(64), x, 1u); }).value().count() > 0);
}

TEST_CASE("abandoned windows before the work began leave others their times, many times over") {
  FakeServer s;
  Gate gate;
  const Stream stream = s.client.stream(), other = s.client.stream();
  Buffer<u32> flag = s.buffer({0}), x = s.buffer({1});
  REQUIRE(run(stream, s.gated, flag.arg(), scalar(1), scalar64(gate.address())).has_value());
  gate.await_entered();
  for (int i = 0; i < 50; ++i) {
    const ProfileToken behind = start_profile(stream).value();  // its start waits for the gate
    CHECK(abandon_profile(stream, behind).has_value());
    const auto time = profile(other, [&] { (void)run(other, s.add, x.arg(), scalar(1)); });
    CHECK(time.value().count() > 0);
    CHECK(time.value() < std::chrono::seconds(5));
  }
  gate.open = true;
  CHECK(x.read().value()[0] == 51);
}

TEST_CASE("windows of a device that is lost end with that") {
  const Client client = sim_client(kSimH200);
  const Stream stream = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(64, 1));
  REQUIRE(profiled::spin(stream, for_num_elems(64), x, 1u).has_value());
  const ProfileToken window = start_profile(stream).value(), other = start_profile(client.stream()).value();
  {
    const SimScript script(R"({"kernels": [{"n": 1, "fault": "illegal_address"}], "quiet": true})");
    (void)profiled::spin(stream, for_num_elems(64), x, 2u);
    const auto time = end_profile(stream, window);
    REQUIRE_FALSE(time.has_value());
    CHECK(time.error().is_device_poisoned());
    CHECK(end_profile(stream, other).error().is_device_poisoned());
    CHECK(start_profile(stream).error().is_device_poisoned());
    CHECK(code(end_profile(stream, window)) == ErrorCode::NotRegistered);
  }
}

// --- the timeline -----------------------------------------------------------------------------------------------------------------

TEST_CASE("the timeline has every launch, copy, fill and transfer of a device with what it was, and what was compiled") {
  const Client client = each_client();
  const Stream one = client.stream(), two = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(64, 1)), y = made(client, std::vector<u32>(64, 2));
  Timeline timeline = Timeline::start().value();
  CHECK(Timeline::start().error().rule() == "TimelineRunning");
  // A kernel of its own, so that it is compiled now.
  const auto kernel = local_kernel("timed", [](InOut<u32> v) {
    auto i = global_id().x;
    If (i < v.size()) { v[i] += 3u; }
  });
  REQUIRE(kernel(one, {{2}, {32}}, x).has_value());
  REQUIRE(profiled::spin(two, for_num_elems(64), y, 100u).has_value());
  REQUIRE(kernel(one, {{2}, {32}}, x).has_value());
  REQUIRE(rt::copy(one, y.binding(), x.binding()).has_value());
  REQUIRE(rt::fill_zero(two, x.binding()).has_value());
  REQUIRE(rt::write(one, x.binding(), std::vector<u32>(64, 5).data()).has_value());
  CHECK(x.read().value()[3] == 5);
  CHECK_FALSE(kernel(one, {{2}, {0}}, x).has_value());  // refused: not there
  const Trace trace = timeline.finish().value();
  CHECK(timeline.finish().error().rule() == "TimelineFinished");
  REQUIRE(kernel(one, {{2}, {32}}, x).has_value());  // too late
  CHECK(x.read().has_value());

  const Parsed p = parse(trace.json);
  CHECK(p.dropped == "0");
  CHECK(trace.dropped == 0);
  std::vector<Slice> launches;
  int process = 0;
  for (const Slice& s : p.of("launch"))
    if (s.name == "timed") process = s.process;
  REQUIRE(process != 0);
  CHECK(p.processes.at(process) == client.server().label());
  std::map<std::string, int> kinds;
  for (const Slice& s : p.slices) {
    if (s.process != process) continue;
    ++kinds[s.kind];
    if (s.kind == "launch") launches.push_back(s);
    else CHECK(s.args.at("bytes") == 256);
    CHECK(s.args.contains("stream"));
  }
  CHECK(kinds == std::map<std::string, int>{{"launch", 3}, {"copy", 1}, {"fill", 1}, {"upload", 1}, {"download", 1}});
  CHECK(std::count_if(launches.begin(), launches.end(), [](const Slice& s) { return s.name == "timed"; }) == 2);
  std::set<int> tracks;
  for (const Slice& s : launches) {
    tracks.insert(s.track);
    CHECK(s.end > s.begin);
    CHECK(s.source.find("profile_test.cpp:") != std::string::npos);
    if (s.name != "timed") continue;
    CHECK(s.args.at("grid") == nlohmann::json({2, 1, 1}));
    CHECK(s.args.at("block") == nlohmann::json({32, 1, 1}));
  }
  CHECK(tracks.size() == 2);
  bool compiled = false, loaded = false;
  for (const Slice& s : p.of("host")) {
    compiled = compiled || (s.name == "compile" && s.args.value("kernel", "") == "timed" && s.end > s.begin);
    loaded = loaded || (s.name == "load" && s.args.value("kernel", "") == "timed");
  }
  CHECK(compiled);
  CHECK(loaded);
  CHECK(trace.operations >= 7);
}

TEST_CASE("replays and host calls have slices of their own in the timeline, with what they are and where they come from") {
  const Client client = each_client();
  const Stream stream = client.stream(), other = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(64, 1)), y = made(client, std::vector<u32>(64, 2));
  const auto body = [&] {
    profiled::spin(stream, for_num_elems(64), x, 10u).value();
    rt::copy(stream, y.binding(), x.binding()).value();
    rt::fill_zero(stream, x.binding()).value();
  };
  const unsigned captured_at = __LINE__ + 1;
  const Graph graph = capture(stream, body).value();
  Timeline timeline = Timeline::start().value();
  REQUIRE(graph.replay(stream).has_value());
  REQUIRE(graph.replay(other).has_value());
  bool called = false;
  const unsigned called_at = __LINE__ + 1;
  REQUIRE(stream.call([&] { called = true; }).has_value());
  const unsigned operation_at = __LINE__ + 1;
  REQUIRE(op::call([] {}).start(stream).sync().has_value());
  REQUIRE(stream.sync().has_value());
  REQUIRE(other.sync().has_value());
  CHECK(called);
  const Parsed p = parse(timeline.finish().value().json);
  const auto graphs = p.of("graph"), calls = p.of("call");
  REQUIRE(graphs.size() == 2);
  std::set<int> tracks;
  for (const Slice& s : graphs) {
    tracks.insert(s.track);
    CHECK(s.name == "graph " + std::to_string(graph.id()));
    CHECK_MESSAGE(s.source.ends_with("profile_test.cpp:" + std::to_string(captured_at)), s.source);
    CHECK(s.args.at("operations") == 3);
    CHECK_FALSE(s.args.contains("bytes"));
    CHECK(s.end > s.begin);
  }
  CHECK(tracks.size() == 2);
  REQUIRE(calls.size() == 2);
  std::set<std::string> lines;
  for (const Slice& s : calls) {
    CHECK(s.process == 0);  // the host's
    CHECK(s.name == "host call");
    CHECK(s.args.at("stream") == (stream.id() & ~(std::uint64_t{7} << 61)));
    lines.insert(s.source.substr(s.source.rfind(':') + 1));
  }
  CHECK(lines == std::set<std::string>{std::to_string(called_at), std::to_string(operation_at)});
}

TEST_CASE("a timeline that has no room counts what it drops, and one that nobody finishes leaves room for the next") {
  const Client client = each_client();
  const Stream stream = client.stream();
  Buffer<u32> x = made(client, std::vector<u32>(32, 1));
  {
    const Timeline forgotten = Timeline::start().value();
    (void)profiled::spin(stream, {{1}, {32}}, x, 1u);
  }
  Timeline timeline = Timeline::start({.operations = 10}).value();
  for (int i = 0; i < 25; ++i) REQUIRE(profiled::spin(stream, {{1}, {32}}, x, 1u).has_value());
  const Trace trace = timeline.finish().value();
  const Parsed p = parse(trace.json);
  CHECK(p.of("launch").size() == 10);
  CHECK(trace.operations == 10);
  CHECK(trace.dropped == 15);
  CHECK(p.dropped == "15");
  CHECK(trace.save("/nowhere/at/all.json").error().rule() == "TraceFile");
}

TEST_CASE("thousands of operations on many streams from several threads are all there, each in its order") {
  const Client client = each_client();
  constexpr int kThreads = 3, kEach = 700;  // more than are looked through at a time
  std::vector<Stream> streams;
  std::vector<Buffer<u32>> buffers;
  for (int t = 0; t < kThreads; ++t) {
    streams.push_back(client.stream());
    buffers.push_back(made(client, std::vector<u32>(32, 0)));
  }
  REQUIRE(profiled::spin(streams[0], {{1}, {32}}, buffers[0], 1u).has_value());
  Timeline timeline = Timeline::start().value();
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < kThreads; ++t)
      threads.emplace_back([&, t] {
        for (int i = 0; i < kEach; ++i) (void)profiled::spin(streams[t], {{1}, {32}}, buffers[t], 1u);
      });
  }
  const Trace trace = timeline.finish().value();
  const Parsed p = parse(trace.json);
  CHECK(p.of("launch").size() == kThreads * kEach);
  CHECK(trace.dropped == 0);
}

TEST_CASE("a server that goes while a timeline runs is in it, one that comes too") {
  Timeline timeline = Timeline::start().value();
  {
    FakeServer s;
    Buffer<u32> x = s.buffer({1, 2});
    REQUIRE(run(s.client.default_stream(), s.add, x.arg(), scalar(1)).has_value());
    REQUIRE(s.client.default_stream().sync().has_value());
  }
  const Parsed p = parse(timeline.finish().value().json);
  const auto launches = p.of("launch");
  REQUIRE(launches.size() == 1);
  CHECK(launches[0].name == "add");
}

TEST_CASE("while nothing is watched, nothing is noted") {
  FakeServer s;
  CHECK(s.local().device().watcher() == nullptr);
  const ProfileToken plain = start_profile(s.client.default_stream()).value();
  CHECK(s.local().device().watcher() == nullptr);  // the stream's place is enough
  const ProfileToken waits = start_profile_at_launch(s.client.default_stream()).value();
  CHECK(s.local().device().watcher() != nullptr);
  Buffer<u32> x = s.buffer({1});
  REQUIRE(run(s.client.default_stream(), s.add, x.arg(), scalar(1)).has_value());
  CHECK(s.local().device().watcher() == nullptr);
  CHECK(end_profile(s.client.default_stream(), waits).has_value());
  CHECK(end_profile(s.client.default_stream(), plain).has_value());
}

// --- in programs ------------------------------------------------------------------------------------------------------------------

TEST_CASE("KILN_TRACE writes the trace of a whole program, on each device") {
  for (const ProgramDevice& device : program_devices()) {
    CAPTURE(device.name);
    const TempFolder folder;
    std::vector<std::string> environment = device.environment;
    environment.push_back("KILN_TRACE=" + folder.file("trace.json"));
    const ProcessResult result =
        run_process({KILN_BINARY_DIR "/lib/fakecuda/kiln_fault_child", device.name.starts_with("cpu") ? "cpu" : "cuda"}, environment);
    CHECK(result.status == 0);
    const Parsed p = parse(read_file(folder.file("trace.json")));
    std::set<std::string> names;
    for (const Slice& s : p.of("launch")) names.insert(s.name);
    CHECK(names == std::set<std::string>{"first", "second", "third"});
    CHECK_FALSE(p.of("host").empty());
    environment.push_back("KILN_TRACE_OPERATIONS=2");
    CHECK(run_process({KILN_BINARY_DIR "/lib/fakecuda/kiln_fault_child", device.name.starts_with("cpu") ? "cpu" : "cuda"}, environment)
              .status == 0);
    const Parsed few = parse(read_file(folder.file("trace.json")));
    CHECK(few.slices.size() > 0);
    CHECK(few.of("launch").size() <= 2);
    CHECK(std::stoi(few.dropped) > 0);
    environment.pop_back();
    environment.back() = "KILN_TRACE=" + folder.file("none/trace.json");
    CHECK(run_process({KILN_BINARY_DIR "/lib/fakecuda/kiln_fault_child", device.name.starts_with("cpu") ? "cpu" : "cuda"}, environment)
              .err.find("KILN_TRACE: '") != std::string::npos);
  }
}

TEST_CASE("NVTX ranges: around what is enqueued and compiled, properly nested a thread, where a profiler's library is there") {
  const std::string tools = KILN_BINARY_DIR "/lib/fakenvtx/libnvtx_tools_ext.so",
                    injection = KILN_BINARY_DIR "/lib/fakenvtx/libnvtx_injection.so";
  struct Row {
    const char* name;
    std::vector<std::string> environment;
    bool heard;
  };
  const Row rows[] = {
      {"the tools' library by its path", {"KILN_NVTX=" + tools, "NVTX_INJECTION64_PATH"}, true},
      {"a profiler that injects itself", {"KILN_NVTX", "NVTX_INJECTION64_PATH=" + injection}, true},
      {"told to use what injects itself", {"KILN_NVTX=on", "NVTX_INJECTION64_PATH=" + injection}, true},
      {"told not to", {"KILN_NVTX=off", "NVTX_INJECTION64_PATH=" + injection}, false},
      {"nobody there", {"KILN_NVTX", "NVTX_INJECTION64_PATH"}, false},
  };
  for (const Row& row : rows) {
    CAPTURE(row.name);
    const TempFolder folder;
    std::vector<std::string> environment = row.environment;
    environment.push_back("FAKE_NVTX_FILE=" + folder.file("heard"));
    environment.push_back("KILN_DEVICE=cpu");
    const ProcessResult result = run_process({KILN_BINARY_DIR "/lib/fakecuda/kiln_fault_child", "cpu"}, environment);
    CHECK(result.status == 0);
    CHECK(result.err.find("NVTX") == std::string::npos);
    if (!row.heard) {
      CHECK_THROWS(read_file(folder.file("heard")));
      continue;
    }
    std::map<std::string, std::vector<std::string>> open;
    std::multiset<std::string> names;
    const std::string heard = read_file(folder.file("heard"));
    for (std::size_t at = 0; at < heard.size();) {
      const std::size_t end = heard.find('\n', at), space = heard.find(' ', at);
      const std::string thread = heard.substr(at, space - at), what = heard.substr(space + 1, end - space - 1);
      at = end + 1;
      if (what == "pop") {
        REQUIRE_FALSE(open[thread].empty());
        open[thread].pop_back();
      } else {
        names.insert(what.substr(5));
        open[thread].push_back(what);
      }
    }
    for (const auto& [thread, left] : open) CHECK(left.empty());
    CHECK(names.count("first") == 1);
    CHECK(names.count("compile first") == 1);
    CHECK(names.count("upload") >= 1);
  }
  const ProcessResult missing =
      run_process({KILN_BINARY_DIR "/lib/fakecuda/kiln_fault_child", "cpu"}, {"KILN_NVTX=/nowhere/libnvtx.so", "KILN_DEVICE=cpu"});
  CHECK(missing.status == 0);
  CHECK(missing.err.find("no NVTX ranges") != std::string::npos);
  std::string why;
  CHECK(cuda::open_nvtx(KILN_BINARY_DIR "/lib/fakecuda/libcuda_nothing.so", why) == nullptr);
  CHECK(why.find("no library of NVTX") != std::string::npos);
}
