#include "src/launch_logs.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "kiln/ir/message.h"
#include "src/config.h"

namespace kiln::rt {
namespace {

// One call for a line, which locks the stream: lines of several threads do not mix.
void to_stderr(const LogLine& line) {
  std::string text(line.text);
  text += '\n';
  std::fwrite(text.data(), 1, text.size(), stderr);
}

void give(const LogSink& sink, const LogLine& line) noexcept {
  try {
    sink ? sink(line) : to_stderr(line);
  } catch (...) {  // lost with the line, as kiln/runtime/log.h says
  }
}

}  // namespace

LaunchLogs::LaunchLogs(Device& device)
    : device_(device), bytes_(configured_number(Setting::KernelLogBytes)), sink_(std::make_shared<const LogSink>()) {}

LaunchLogs::~LaunchLogs() {
  for (const auto& log : all_)
    if (log->memory.host != nullptr) device_.unmap(log->memory);
}

// One with memory for a launch of the program, as far as there is memory.
LaunchLogMemory& LaunchLogs::take_free(const Program& program, bool in_use) {
  LaunchLogMemory* log = nullptr;
  std::uint64_t wanted = 0;
  {
    const std::lock_guard lock(mutex_);
    if (free_ == nullptr) {
      all_.push_back(std::make_unique<LaunchLogMemory>());
      free_ = all_.back().get();
    }
    log = free_;
    free_ = log->next;
    if (in_use) ++in_use_;
    wanted = std::max(bytes_, std::uint64_t{sizeof(ir::LogHeader)}) / 64 * 64;
    log->as_called = called_;
  }
  log->program = &program;
  try {
    log->lost.clear();
    find_memory(*log, wanted);
  } catch (const std::bad_alloc&) {
    if (in_use) give_back(log);
    else give_up(*log);
    throw;
  }
  if (log->memory.host != nullptr) {
    log->stride = program.log_stride;
    log->header().count = 0;
    log->header().capacity = (log->bytes - sizeof(ir::LogHeader)) / log->stride;
  }
  return *log;
}

LaunchLogMemory* LaunchLogs::take(const Program& program) {
  LaunchLogMemory& log = take_free(program, true);
  if (log.memory.host != nullptr) return &log;
  over(&log);  // the sink is told in its turn
  return nullptr;
}

LaunchLogMemory& LaunchLogs::keep(const Program& program, std::atomic<std::uint32_t>& untold) {
  LaunchLogMemory& log = take_free(program, false);
  log.untold = &untold;
  return log;
}

void LaunchLogs::give_up(LaunchLogMemory& log) noexcept {
  const std::lock_guard lock(mutex_);
  log.untold = nullptr;
  log.next = free_;
  free_ = &log;
}

void LaunchLogs::find_memory(LaunchLogMemory& log, std::uint64_t wanted) {
  log.wanted = wanted;
  if (log.memory.host != nullptr && log.bytes == wanted) return;
  if (log.memory.host != nullptr) device_.unmap(log.memory);
  log.memory = {};
  auto memory = device_.map(wanted);
  log.bytes = wanted;
  if (!memory.has_value()) {  // at least to count
    log.bytes = sizeof(ir::LogHeader);
    memory = device_.map(log.bytes);
  }
  if (memory.has_value()) log.memory = *memory;
  else log.lost = "the log of a launch of kernel '" + *log.program->name + "' is lost: " + memory.error().data().message;
}

bool LaunchLogs::full() const {
  const std::lock_guard lock(mutex_);
  return in_use_ >= kMost;
}

void LaunchLogs::drop(LaunchLogMemory* log) noexcept {
  if (log->untold != nullptr) {
    if (log->memory.host != nullptr) log->header().count = 0;
    log->untold->fetch_sub(1, std::memory_order_release);  // he may give it up from now on
    return;
  }
  log->next = free_;
  free_ = log;
  --in_use_;
}

void LaunchLogs::give_back(LaunchLogMemory* log) noexcept {
  const std::lock_guard lock(mutex_);
  drop(log);
}

void LaunchLogs::over(LaunchLogMemory* log) noexcept {
  const std::lock_guard lock(mutex_);
  log->next = nullptr;
  (first_ == nullptr ? first_ : last_->next) = log;
  last_ = log;
  over_count_.fetch_add(1, std::memory_order_release);
}

void LaunchLogs::deliver(bool wait) {
  std::uint64_t all = over_count_.load(std::memory_order_acquire);
  if (told_count_.load(std::memory_order_acquire) >= all) return;
  std::unique_lock lock(mutex_);
  if (telling_ && teller_ == std::this_thread::get_id()) {  // the sink uses the client: it is told what is over by now once it returns
    asked_ = all;
    return;
  }
  while (told_count_.load(std::memory_order_relaxed) < all) {
    if (telling_) {
      if (!wait) return;
      told_.wait(lock);
      continue;
    }
    LaunchLogMemory* const log = first_;
    first_ = log->next;
    telling_ = true;
    teller_ = std::this_thread::get_id();
    std::shared_ptr<const LogSink> sink = sink_;
    lock.unlock();
    tell(*log, *sink);
    sink.reset();  // where it was replaced meanwhile, it ends here, in its turn, and what it held may use the client
    lock.lock();
    telling_ = false;
    drop(log);
    told_count_.fetch_add(1, std::memory_order_release);
    told_.notify_all();
    all = std::max(all, std::exchange(asked_, 0));
  }
}

bool LaunchLogs::delivering() const {
  const std::lock_guard lock(mutex_);
  return telling_ && teller_ == std::this_thread::get_id();
}

// Leaves the memory cleared for the next launch.
void LaunchLogs::tell(const LaunchLogMemory& log, const LogSink& sink) const {
  const Program& program = *log.program;
  if (log.memory.host == nullptr) {
    give(sink, {.kernel = *program.name, .text = log.lost, .file = {}, .missing = ~std::uint64_t{0}});
    return;
  }
  const ir::LogHeader& header = log.header();
  const std::uint64_t kept = std::min(header.count, header.capacity);
  std::uint64_t broken = 0;
  std::byte* at = log.memory.host + sizeof(ir::LogHeader);
  for (std::uint64_t i = 0; i < kept; ++i, at += log.stride) {
    const auto& record = *reinterpret_cast<const ir::LogRecord*>(at);
    const std::uint32_t state = record.state;  // the launch is over
    if (state == 0 || state > program.logs.size()) {
      ++broken;
      continue;
    }
    const ir::LogSite& site = program.logs[state - 1];
    const auto* values = reinterpret_cast<const std::uint64_t*>(at + sizeof(ir::LogRecord));
    try {
      const std::string text = ir::format_message(site.text, site.values, {values, site.values.size()});
      give(sink, {.kernel = *program.name,
                  .text = text,
                  .file = site.file,
                  .line = site.line,
                  .block = {record.block[0], record.block[1], record.block[2]},
                  .thread = {record.thread[0], record.thread[1], record.thread[2]}});
    } catch (const std::bad_alloc&) { ++broken; }
  }
  std::memset(log.memory.host + sizeof(ir::LogHeader), 0, kept * log.stride);
  const auto missing = [&](std::uint64_t count, const std::string& why) {
    const std::string text = std::to_string(count) + (count == 1 ? " line" : " lines") + " of log by kernel '" + *program.name +
                             (count == 1 ? "' was " : "' were ") + why;
    give(sink, {.kernel = *program.name, .text = text, .file = {}, .missing = count});
  };
  try {
    if (header.count > kept && log.bytes < log.wanted)
      missing(header.count - kept, "dropped: the device had no memory for a log of " + std::to_string(log.wanted) + " bytes");
    else if (header.count > kept)
      missing(header.count - kept, "dropped: the log of a launch has " + std::to_string(log.bytes) +
                                       (log.as_called ? " bytes, as the client's log_bytes() was told; give it more"
                                                      : " bytes; raise KILN_LOG_BYTES, or call the client's log_bytes()"));
    if (broken != 0) missing(broken, "lost: the launch was broken off while writing");
  } catch (const std::bad_alloc&) {  // there is no memory to tell
  }
}

void LaunchLogs::set_sink(LogSink sink) {
  auto shared = std::make_shared<const LogSink>(std::move(sink));
  const std::lock_guard lock(mutex_);
  sink_.swap(shared);
}

void LaunchLogs::set_bytes(std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  bytes_ = bytes;
  called_ = true;
}

}  // namespace kiln::rt
