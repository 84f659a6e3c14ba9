// The log, through spdlog. Compiled with hidden symbols, so that a program may use another version of it.
#include "src/logging.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <mutex>

#include "src/make_error.h"

namespace kiln::rt {
namespace {

constexpr const char* kAreaNames[] = {"launch", "compile", "memory", "stream", "capture", "profile", "environment", "failure"};
static_assert(std::size(kAreaNames) == kLogAreas);
constexpr const char* kLevelNames[] = {"debug", "info", "warning", "error", "off"};
static_assert(std::size(kLevelNames) == static_cast<std::size_t>(LogLevel::Off) + 1);

template <std::size_t N>
std::optional<std::size_t> index_of(std::string_view word, const char* const (&names)[N]) {
  for (std::size_t i = 0; i < N; ++i)
    if (word == names[i]) return i;
  return std::nullopt;
}
template <std::size_t N>
std::string listed(const char* const (&names)[N]) {
  std::string all;
  for (const char* name : names) all += (all.empty() ? "" : ", ") + std::string(name);
  return all;
}

spdlog::level::level_enum of(LogLevel level) {
  switch (level) {
    case LogLevel::Debug: return spdlog::level::debug;
    case LogLevel::Info: return spdlog::level::info;
    case LogLevel::Warning: return spdlog::level::warn;
    case LogLevel::Error: return spdlog::level::err;
    case LogLevel::Off: break;
  }
  return spdlog::level::off;
}

using Loggers = std::array<std::shared_ptr<spdlog::logger>, kLogAreas>;

struct Log {
  std::mutex mutex;
  std::string levels = "warning", sink = "stderr";
  std::shared_ptr<const Loggers> loggers;  // null: nothing was said yet
};
// Immortal: static destructors may still fail and say so.
Log& the_log() {
  static Log& log = *new Log;
  return log;
}

// The levels are ours, so that asking for one is a load; the loggers take all.
std::shared_ptr<const Loggers> make_loggers(const std::string& sink) {
  spdlog::sink_ptr target;
  if (sink == "stderr") target = std::make_shared<spdlog::sinks::stderr_sink_mt>();
  else {
    // spdlog would make it.
    const std::filesystem::path folder = std::filesystem::path(sink).parent_path();
    std::error_code none;
    if (!folder.empty() && !std::filesystem::is_directory(folder, none)) throw spdlog::spdlog_ex("there is no folder for '" + sink + "'");
    target = std::make_shared<spdlog::sinks::basic_file_sink_mt>(sink);
  }
  target->set_pattern("%Y-%m-%d %H:%M:%S.%e kiln %n %l: %v");
  auto loggers = std::make_shared<Loggers>();
  for (std::size_t i = 0; i < kLogAreas; ++i) {
    (*loggers)[i] = std::make_shared<spdlog::logger>(kAreaNames[i], target);
    (*loggers)[i]->set_level(spdlog::level::trace);
    (*loggers)[i]->flush_on(spdlog::level::trace);  // nobody ends the log: what was said is there
    (*loggers)[i]->set_error_handler([](const std::string&) {});
  }
  return loggers;
}

}  // namespace

std::array<std::atomic<LogLevel>, kLogAreas> log_levels{LogLevel::Warning, LogLevel::Warning, LogLevel::Warning, LogLevel::Warning,
                                                        LogLevel::Warning, LogLevel::Warning, LogLevel::Warning, LogLevel::Warning};

std::optional<LogLevels> parse_log_levels(std::string_view text) {
  std::array<std::optional<LogLevel>, kLogAreas> own;
  std::optional<LogLevel> all;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size()), equal = text.find('=', at);
    const bool names_area = equal < end;
    const auto level = index_of(text.substr(names_area ? equal + 1 : at, end - (names_area ? equal + 1 : at)), kLevelNames);
    const auto area = names_area ? index_of(text.substr(at, equal - at), kAreaNames) : std::optional<std::size_t>();
    if (!level || (names_area && !area)) return std::nullopt;
    std::optional<LogLevel>& target = names_area ? own[*area] : all;
    if (target) return std::nullopt;  // twice
    target = static_cast<LogLevel>(*level);
    at = end + 1;
  }
  LogLevels levels;
  for (std::size_t i = 0; i < kLogAreas; ++i) levels[i] = own[i].value_or(all.value_or(LogLevel::Warning));
  return levels;
}

std::string log_levels_allowed() {
  return "a level (" + listed(kLevelNames) + "), and AREA=LEVEL for areas of another (" + listed(kAreaNames) + "), with commas between";
}

void say(LogArea area, LogLevel level, std::string_view text) noexcept try {
  std::shared_ptr<const Loggers> loggers;
  {
    Log& log = the_log();
    const std::lock_guard lock(log.mutex);
    if (log.loggers == nullptr) log.loggers = make_loggers(log.sink);
    loggers = log.loggers;
  }
  (*loggers)[static_cast<std::size_t>(area)]->log(of(level), spdlog::string_view_t(text.data(), text.size()));
} catch (...) {  // lost with the line
}

Result<void> set_up_logging(const std::string& levels, const std::string& sink) {
  Log& log = the_log();
  const std::lock_guard lock(log.mutex);
  if (sink != log.sink) {
    try {
      log.loggers = make_loggers(sink);
    } catch (const spdlog::spdlog_ex& e) {
      return make_error(ErrorCode::Validation, "Configuration",
                        "the file of logging.sink (KILN_LOG_FILE) cannot be written: " + std::string(e.what()) +
                            "; name one in a folder that is there and may be written");
    }
    log.sink = sink;
  }
  if (levels == log.levels) return {};
  const std::optional<LogLevels> parsed = parse_log_levels(levels);
  for (std::size_t i = 0; parsed && i < kLogAreas; ++i) log_levels[i].store((*parsed)[i], std::memory_order_relaxed);
  log.levels = levels;
  return {};
}

}  // namespace kiln::rt
