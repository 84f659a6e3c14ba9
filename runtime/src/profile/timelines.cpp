#include "src/profile/timelines.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <utility>
#include <vector>

#include "src/config.h"
#include "src/local_server.h"
#include "src/logging.h"
#include "src/make_error.h"
#include "src/process.h"
#include "src/profile/profiler.h"
#include "src/profile/ranges.h"

namespace kiln {
namespace rt {
namespace {

struct State {
  std::mutex mutex;  // guards what follows; never held while anything waits
  std::vector<std::weak_ptr<LocalServer>> servers;
  std::uint64_t last = 0;  // timeline
  std::size_t capacity = 0;
  std::int64_t start = 0;
  std::uint64_t dropped = 0;  // spans of the host
  std::vector<DeviceTrace> gone;
  std::vector<TracedSpan> host;
};
// Immortal: servers of static lifetime may outlive every other static.
State& state() {
  static State& s = *new State;
  return s;
}

std::vector<std::shared_ptr<LocalServer>> living() {
  State& s = state();
  std::vector<std::shared_ptr<LocalServer>> all;
  const std::lock_guard lock(s.mutex);
  std::erase_if(s.servers, [](const auto& server) { return server.expired(); });
  for (const auto& server : s.servers)
    if (auto alive = server.lock()) all.push_back(std::move(alive));
  return all;
}

// A small number for the calling thread.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> last{0};
  thread_local const std::uint32_t number = last.fetch_add(1, std::memory_order_relaxed) + 1;
  return number;
}

void stop(std::uint64_t timeline) {
  for (const auto& server : living())
    if (!server->forked()) server->profiler().stop(timeline);
}

Result<std::uint64_t> start(const Timeline::Options& options) {
  State& s = state();
  std::uint64_t timeline = 0;
  {
    const std::lock_guard lock(s.mutex);
    if (running_timeline().load(std::memory_order_relaxed) != 0)
      return make_error(ErrorCode::Validation, "TimelineRunning",
                        "a timeline is being recorded already; finish it first (KILN_TRACE records one for the whole process)");
    timeline = ++s.last;
    s.capacity = options.operations;
    s.start = host_nanoseconds();
    s.dropped = 0;
    s.gone.clear();
    s.host.clear();
    running_timeline().store(timeline, std::memory_order_relaxed);
  }
  for (const auto& server : living()) {
    if (server->forked()) continue;
    if (auto ok = server->profiler().attach(timeline, options.operations); !ok.has_value()) {
      stop(timeline);
      running_timeline().store(0, std::memory_order_relaxed);
      return ok.error();
    }
  }
  if (logs(LogArea::Profile, LogLevel::Info)) {
    say(LogArea::Profile, LogLevel::Info,
        "timeline " + std::to_string(timeline) + " begins, with room for " + std::to_string(options.operations) +
            " operations of each device");
  }
  return timeline;
}

struct Finished {
  Trace trace;
  std::size_t spans = 0;  // of the host
};
Result<Finished> finish(std::uint64_t timeline) {
  State& s = state();
  std::vector<DeviceTrace> devices;
  for (const auto& server : living()) {
    if (server->forked()) continue;
    DeviceTrace trace = server->profiler().finish(timeline, server->label());
    if (!trace.label.empty()) devices.push_back(std::move(trace));
  }
  std::vector<TracedSpan> host;
  std::int64_t began = 0;
  Trace trace;
  {
    const std::lock_guard lock(s.mutex);
    running_timeline().store(0, std::memory_order_relaxed);
    for (DeviceTrace& gone : s.gone) devices.push_back(std::move(gone));
    s.gone.clear();
    host = std::exchange(s.host, {});
    began = s.start;
    trace.dropped = s.dropped;
  }
  for (const DeviceTrace& device : devices) {
    trace.operations += device.operations.size();
    trace.dropped += device.dropped;
  }
  const std::size_t spans = host.size();
  trace.json = chrome_trace(began, devices, host, trace.dropped);
  if (logs(LogArea::Profile, LogLevel::Info)) {
    say(LogArea::Profile, LogLevel::Info,
        "timeline " + std::to_string(timeline) + " is over: " + std::to_string(trace.operations) + " operations of " +
            std::to_string(devices.size()) + " devices, " + std::to_string(trace.dropped) + " dropped");
  }
  return Finished{std::move(trace), spans};
}

// KILN_TRACE: from the first server to the end of the process.
struct Environment {
  std::string file, by;  // and who named it
  std::uint64_t timeline = 0;
  unsigned process = 0;
};
Environment& environment() {
  static Environment& e = *new Environment;
  return e;
}

void say(const std::string& by, const std::string& text) { std::fputs(("kiln: " + by + ": " + text + "\n").c_str(), stderr); }

// Without touching it: it may be the trace of the last run, and a process that does nothing leaves it as it is.
bool may_write(const std::string& file) {
  std::error_code none;
  if (std::filesystem::exists(file, none)) return !std::filesystem::is_directory(file, none) && ::access(file.c_str(), W_OK) == 0;
  const std::filesystem::path folder = std::filesystem::path(file).parent_path();
  return ::access(folder.empty() ? "." : folder.c_str(), W_OK | X_OK) == 0;
}

void write_at_exit() {
  const Environment& e = environment();
  if (process_number() != e.process || running_timeline().load(std::memory_order_relaxed) != e.timeline) return;
  try {
    const Finished done = finish(e.timeline).value();
    if (done.trace.operations == 0 && done.trace.dropped == 0 && done.spans == 0) return;  // it gave no device anything to do
    if (auto saved = done.trace.save(e.file); !saved.has_value()) say(e.by, saved.error().data().message);
  } catch (const std::exception& error) { say(e.by, error.what()); }
}

void look_at_environment() {
  static std::once_flag once;
  std::call_once(once, [] {
    const std::string file = configured_text(Setting::Trace);
    if (file.empty()) return;
    const std::string by = configured_by(Setting::Trace);
    if (!may_write(file))
      return say(by, "'" + file + "' cannot be written; nothing is recorded. Name a file in a folder that is there and may be written");
    const auto timeline = start({.operations = configured_number(Setting::TraceOperations)});
    if (!timeline.has_value()) return say(by, timeline.error().data().message);
    environment() = {file, by, *timeline, process_number()};
    std::atexit(&write_at_exit);
  });
}

}  // namespace

void timeline_sees(const std::shared_ptr<LocalServer>& server) {
  State& s = state();
  std::size_t capacity = 0;
  {
    const std::lock_guard lock(s.mutex);
    s.servers.push_back(server);
  }
  look_at_environment();
  std::uint64_t timeline = 0;
  {
    const std::lock_guard lock(s.mutex);
    timeline = running_timeline().load(std::memory_order_relaxed);
    capacity = s.capacity;
  }
  if (timeline != 0) (void)server->profiler().attach(timeline, capacity);  // a device that cannot time is not in the trace
}

void timeline_keeps(std::uint64_t timeline, DeviceTrace trace) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (running_timeline().load(std::memory_order_relaxed) == timeline && !trace.label.empty()) s.gone.push_back(std::move(trace));
}

void HostSpan::begin(const char* range) noexcept {
  if (const RangeSink* ranges = range_sink()) ranges->push(range);
  if (timeline_ != 0) span_.begin = host_nanoseconds();
}

HostSpan::HostSpan(const char* what, const std::string& kernel) : timeline_(running_timeline().load(std::memory_order_relaxed)) {
  if (timeline_ != 0) span_ = {.kind = "host", .name = what, .kernel = kernel};
  if (range_sink() != nullptr) begin((std::string(what) + " " + kernel).c_str());
  else begin(what);
}

HostSpan::HostSpan(std::uint64_t stream, const std::source_location& where) noexcept
    : timeline_(running_timeline().load(std::memory_order_relaxed)) {
  span_.kind = "call";
  if (timeline_ != 0) {
    try {
      span_.name = "host call";
      span_.place = std::string(where.file_name()) + ":" + std::to_string(where.line());
    } catch (const std::bad_alloc&) {}  // the call is made all the same
    span_.stream = stream;
    span_.has_stream = true;
  }
  begin("host call");
}

HostSpan::~HostSpan() {
  if (const RangeSink* ranges = range_sink()) ranges->pop();
  if (timeline_ == 0) return;
  span_.end = host_nanoseconds();
  span_.thread = thread_number();
  State& s = state();
  const std::lock_guard lock(s.mutex);
  if (running_timeline().load(std::memory_order_relaxed) != timeline_) return;
  if (s.host.size() >= s.capacity) {
    ++s.dropped;
    return;
  }
  try {
    s.host.push_back(std::move(span_));
  } catch (const std::bad_alloc&) { ++s.dropped; }
}

}  // namespace rt

Result<void> Trace::save(const std::string& path) const {
  std::ofstream file(path, std::ios::binary);
  file << json;
  file.close();
  if (file) return {};
  return make_error(ErrorCode::NotFound, "TraceFile",
                    "the trace cannot be written to '" + path + "'; name a file in a folder that is there and may be written");
}

Result<Timeline> Timeline::start(const Options& options) {
  return rt::or_no_memory([&]() -> Result<Timeline> {
    auto running = rt::start(options);
    if (!running.has_value()) return running.error();
    return Timeline(*running);
  });
}

Timeline::~Timeline() {
  if (running_ == 0 || rt::running_timeline().load(std::memory_order_relaxed) != running_) return;
  try {
    rt::stop(running_);
  } catch (const std::bad_alloc&) {}  // the devices record on, and the next timeline starts anew
  rt::running_timeline().store(0, std::memory_order_relaxed);
}

Result<Trace> Timeline::finish() {
  if (running_ == 0) return make_error(ErrorCode::Validation, "TimelineFinished", "the timeline is finished already; start another one");
  return rt::or_no_memory([&]() -> Result<Trace> { return rt::finish(std::exchange(running_, 0)).value().trace; });
}

}  // namespace kiln
