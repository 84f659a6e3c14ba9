// What the runtime says of itself: one logger an area, each with a level. Off but for warnings unless KILN_LOG or the configuration file
// says otherwise. What a call costs while its level is off is one load:
//
//   if (logs(LogArea::Compile, LogLevel::Info)) say(LogArea::Compile, LogLevel::Info, "...");
//
// Never call say() under a lock that a launch takes: it writes.
#pragma once
#include <array>
#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kiln/runtime/error.h"

namespace kiln::rt {
#pragma GCC visibility push(default)  // logging.cpp is compiled with all else hidden

enum class LogArea : std::uint8_t {
  Launch,       // debug: each launch, with what became of it
  Compile,      // info: each program that is compiled, each batch; debug: kernels that are queued
  Memory,       // debug: allocations
  Stream,       // debug: waits for a stream or for all
  Capture,      // info: graphs that are made, and captures that give none; debug: the steps of a capture, replays
  Profile,      // info: timelines; debug: windows
  Environment,  // warning: an environment that cannot be used, or is damaged; debug: why a kernel is not there
  Failure,      // warning: a device is lost; info: each operation that fails, with the whole text
};
enum class LogLevel : std::uint8_t { Debug, Info, Warning, Error, Off };
inline constexpr std::size_t kLogAreas = static_cast<std::size_t>(LogArea::Failure) + 1;

using LogLevels = std::array<LogLevel, kLogAreas>;
// "LEVEL,AREA=LEVEL,...": one level for all areas, in any place but at most once (else warning), and areas with levels of their own.
std::optional<LogLevels> parse_log_levels(std::string_view text);
std::string log_levels_allowed();

extern std::array<std::atomic<LogLevel>, kLogAreas> log_levels;
inline bool logs(LogArea area, LogLevel level) {
  return level >= log_levels[static_cast<std::size_t>(area)].load(std::memory_order_relaxed);
}
// Writes a line. What cannot be written is lost. Thread-safe.
void say(LogArea area, LogLevel level, std::string_view text) noexcept;

// As the configuration says; nothing happens where that is as it was. `levels` is one that parse_log_levels() takes. Errors (rule
// Configuration): the file of the sink cannot be opened.
Result<void> set_up_logging(const std::string& levels, const std::string& sink);

#pragma GCC visibility pop
}  // namespace kiln::rt
