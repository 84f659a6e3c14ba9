// The one table of what can be set for a process: by a key of the configuration file, by a variable of the environment, or by both.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln::rt {

enum class Setting : std::uint8_t {
  Config,
  Device,
  CpuWorkers,
  CudaLibrary,
  Codegen,
  Environment,
  EnvironmentBytes,
  Parallelism,
  KernelLogBytes,
  MemoryPools,
  MemoryMaxPage,
  MemoryKeep,
  MemoryPersistent,
  MemoryDeferred,
  MemoryDeferredBytes,
  Levels,
  Sink,
  Trace,
  TraceOperations,
  Nvtx,
};
inline constexpr std::size_t kSettings = static_cast<std::size_t>(Setting::Nvtx) + 1;

enum class SettingKind : std::uint8_t {
  Text,    // any
  Number,  // least to most, decimal
  Choice,  // one of the words in `choices`, which are separated by blanks
  Levels,  // of the log, see logging.h
  Path,    // in the file: relative to its folder; the words in `choices` are no paths
};

struct SettingRow {
  Setting setting;
  const char* key;       // "section.name"; empty: the file cannot set it
  const char* variable;  // empty: only the file can
  SettingKind kind;
  const char* fallback;  // as a value; empty: see `meaning`
  std::uint64_t least, most;
  const char* choices;
  const char* meaning;  // one sentence for the documentation
};

// One row a setting, in the order of the enumeration.
std::span<const SettingRow> settings();
const SettingRow& row(Setting setting);
bool is_word(const SettingRow& row, std::string_view value);  // one of its choices
std::string allowed(const SettingRow& row);                   // "a number from 1 to 1024"

}  // namespace kiln::rt
