#include "kiln/runtime/modes.h"

#include <algorithm>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "src/launch_modes.h"
#include "src/make_error.h"
#include "src/server.h"

namespace kiln {
namespace {

struct StreamEntry {
  const Server* server;  // alive: the override has its client
  std::uint64_t stream, number;
  StreamMode mode;
};

// Immortal, since overrides of static lifetime may be. Its lock is held for moments only.
struct Modes {
  std::mutex mutex;
  ProcessMode process = ProcessMode::Execute;
  std::uint32_t process_overrides = 0;
  std::shared_ptr<rt::StatisticsState> collector;
  std::vector<StreamEntry> streams;  // the newest last
  std::uint64_t last_number = 0;
  std::vector<std::weak_ptr<Server>> queued;
};
Modes& modes() {
  static Modes& all = *new Modes;
  return all;
}

StreamMode mode_of_stream(const Modes& all, const Server& server, std::uint64_t stream) {
  for (auto entry = all.streams.rbegin(); entry != all.streams.rend(); ++entry)
    if (entry->server == &server && entry->stream == stream) return entry->mode;
  return all.process == ProcessMode::Execute ? StreamMode::Execute : StreamMode::Discard;
}

// Under the lock: an override goes. Gives the devices whose queues are to be compiled: all, where it was the last.
std::vector<std::weak_ptr<Server>> one_less(Modes& all) noexcept {
  rt::open_overrides.fetch_sub(1, std::memory_order_relaxed);
  if (all.process_overrides != 0 || !all.streams.empty()) return {};
  return std::exchange(all.queued, {});
}

void compile_on(const std::vector<std::weak_ptr<Server>>& servers) noexcept {
  for (const std::weak_ptr<Server>& one : servers) try {
      if (const std::shared_ptr<Server> server = one.lock()) server->compile_queued();
    } catch (...) {  // what stays queued is compiled when it is needed
    }
}

Error conflict(std::string message) { return make_error(ErrorCode::Validation, "ModeConflict", std::move(message)); }

}  // namespace

const char* name(ProcessMode mode) {
  switch (mode) {
    case ProcessMode::Execute: return "Execute";
    case ProcessMode::CompileOnly: return "CompileOnly";
    case ProcessMode::CompileAndAutotune: return "CompileAndAutotune";
  }
  return "?";
}
const char* name(StreamMode mode) { return mode == StreamMode::Execute ? "Execute" : "Discard"; }
const char* name(LaunchMode mode) {
  switch (mode) {
    case LaunchMode::Execute: return "Execute";
    case LaunchMode::Compile: return "Compile";
    case LaunchMode::Queue: return "Queue";
  }
  return "?";
}

LaunchMode launch_mode(ProcessMode process, StreamMode stream) {
  if (stream == StreamMode::Execute) return LaunchMode::Execute;
  return process == ProcessMode::CompileAndAutotune ? LaunchMode::Compile : LaunchMode::Queue;
}

ProcessMode process_mode() {
  Modes& all = modes();
  const std::lock_guard lock(all.mutex);
  return all.process;
}
StreamMode stream_mode(const Stream& stream) {
  Modes& all = modes();
  const std::lock_guard lock(all.mutex);
  return mode_of_stream(all, stream.client().server(), stream.id());
}
LaunchMode launch_mode(const Stream& stream) { return rt::mode_of_launch(stream.client().server(), stream.id()); }

Result<ProcessModeOverride> ProcessModeOverride::open(ProcessMode mode, std::optional<StatisticsCollector> collector) {
  Modes& all = modes();
  const std::lock_guard lock(all.mutex);
  if (all.process_overrides != 0 && all.process != mode) {
    return conflict(std::string("an override of the process mode ") + name(mode) + " cannot open while one of " + name(all.process) +
                    " is open; close that first");
  }
  if (all.process_overrides != 0 && collector && collector->state() != all.collector) {
    return conflict(std::string("an override of the process mode ") + name(mode) + " cannot open with this collector while one with " +
                    (all.collector != nullptr ? "another" : "none") + " is open; use the same collector, or close that first");
  }
  if (all.process_overrides++ == 0) {
    all.process = mode;
    all.collector = collector ? collector->state() : nullptr;
  }
  rt::open_overrides.fetch_add(1, std::memory_order_relaxed);
  return ProcessModeOverride();
}

ProcessModeOverride& ProcessModeOverride::operator=(ProcessModeOverride&& other) noexcept {
  if (this == &other) return *this;
  close();
  open_ = std::exchange(other.open_, false);
  return *this;
}

void ProcessModeOverride::close() noexcept {
  if (!std::exchange(open_, false)) return;
  Modes& all = modes();
  std::vector<std::weak_ptr<Server>> queued;
  std::shared_ptr<rt::StatisticsState> collector;  // goes away without the lock
  {
    const std::lock_guard lock(all.mutex);
    if (--all.process_overrides == 0) {
      all.process = ProcessMode::Execute;
      collector.swap(all.collector);
    }
    queued = one_less(all);
  }
  compile_on(queued);
}

StreamModeOverride::StreamModeOverride(const Stream& stream, StreamMode mode) : stream_(stream) {
  Modes& all = modes();
  const std::lock_guard lock(all.mutex);
  all.streams.push_back({&stream.client().server(), stream.id(), number_ = ++all.last_number, mode});
  rt::open_overrides.fetch_add(1, std::memory_order_relaxed);
}
StreamModeOverride::StreamModeOverride(StreamModeOverride&& other) noexcept : stream_(std::move(other.stream_)), number_(other.number_) {
  other.stream_.reset();
}
StreamModeOverride& StreamModeOverride::operator=(StreamModeOverride&& other) noexcept {
  if (this == &other) return *this;
  close();
  stream_ = std::move(other.stream_);
  other.stream_.reset();
  number_ = other.number_;
  return *this;
}

void StreamModeOverride::close() noexcept {
  if (!stream_) return;
  Modes& all = modes();
  std::vector<std::weak_ptr<Server>> queued;
  {
    const std::lock_guard lock(all.mutex);
    std::erase_if(all.streams, [&](const StreamEntry& entry) { return entry.number == number_; });
    queued = one_less(all);
  }
  compile_on(queued);
  stream_.reset();
}

Result<void> compile_queued(const Client& client) { return client.server().compile_queued(); }

namespace rt {

std::atomic<std::uint32_t> open_overrides{0};

LaunchMode mode_of_launch(const Server& server, std::uint64_t stream) {
  Modes& all = modes();
  const std::lock_guard lock(all.mutex);
  return launch_mode(all.process, mode_of_stream(all, server, stream));
}

std::shared_ptr<StatisticsState> open_collector() {
  if (!any_override()) return nullptr;
  Modes& all = modes();
  const std::lock_guard lock(all.mutex);
  return all.collector;
}

void note_queued(const std::shared_ptr<Server>& server) {
  Modes& all = modes();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.queued, [](const std::weak_ptr<Server>& one) { return one.expired(); });
  const bool known = std::any_of(all.queued.begin(), all.queued.end(),
                                 [&](const std::weak_ptr<Server>& one) { return !one.owner_before(server) && !server.owner_before(one); });
  if (!known) all.queued.push_back(server);
}

}  // namespace rt
}  // namespace kiln
