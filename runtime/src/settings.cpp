#include "src/settings.h"

#include <iterator>

#include "src/logging.h"

namespace kiln::rt {
namespace {

using Kind = SettingKind;

constexpr SettingRow text(Setting setting, const char* key, const char* variable, const char* meaning) {
  return {setting, key, variable, Kind::Text, "", 0, 0, "", meaning};
}
constexpr SettingRow number(Setting setting, const char* key, const char* variable, const char* fallback, std::uint64_t least,
                            std::uint64_t most, const char* meaning) {
  return {setting, key, variable, Kind::Number, fallback, least, most, "", meaning};
}
constexpr SettingRow choice(Setting setting, const char* key, const char* variable, const char* fallback, const char* words,
                            const char* meaning) {
  return {setting, key, variable, Kind::Choice, fallback, 0, 0, words, meaning};
}
// `words` are no paths; the first of them is what holds where nothing is set.
constexpr SettingRow path(Setting setting, const char* key, const char* variable, const char* words, const char* meaning) {
  return {setting, key, variable, Kind::Path, words, 0, 0, words, meaning};
}
constexpr std::uint64_t kMostThreads = 1024, kMostBytes = std::uint64_t{1} << 40;

// What loads code has no key: whoever can put a file somewhere above the working directory must not choose what the process executes.
constexpr SettingRow kRows[] = {
    text(Setting::Config, "", "KILN_CONFIG",
         "the configuration file: its path, or `off` for none; else the first `kiln.json` in the working directory and those above it"),
    text(Setting::Device, "device.default", "KILN_DEVICE",
         "the device of `Client::default_client()`: `cpu`, `cpu:N`, `cuda` or `cuda:N`; else the first usable GPU, else the CPU"),
    number(Setting::CpuWorkers, "device.cpu_workers", "KILN_CPU_WORKERS", "", 1, kMostThreads,
           "how many threads the CPU device runs kernels on; else one for each hardware thread"),
    text(Setting::CudaLibrary, "", "KILN_CUDA_LIBRARY", "the library of the CUDA driver; else `libcuda.so.1`, as the loader finds it"),
    text(Setting::Codegen, "", "KILN_CODEGEN",
         "the library of the code generator; else `libkiln_codegen.so` beside the runtime, or as the loader finds it"),
    text(Setting::Environment, "", "KILN_ENV",
         "the [environment](environment.md), where compiled kernels are kept: `off`; or its folder, then with `:` between them folders and "
         "files that are only read; else `kiln` in `XDG_CACHE_HOME`, else in `.cache` of `HOME`"),
    number(Setting::EnvironmentBytes, "environment.max_bytes", "KILN_ENV_BYTES", "1073741824", 65536, kMostBytes,
           "how many bytes the environment's file may have; the kernels that were not used for longest go"),
    number(Setting::Parallelism, "compilation.parallelism", "KILN_COMPILE_JOBS", "", 1, kMostThreads,
           "how many queued kernels are compiled at a time; else one for each hardware thread"),
    number(Setting::KernelLogBytes, "kernels.log_bytes", "KILN_LOG_BYTES", "1048576", 0, kMostBytes,
           "how many bytes of what its kernel logs a launch keeps; `Client::log_bytes()` changes it for a device"),
    choice(Setting::MemoryPools, "memory.pools", "KILN_MEMORY_POOLS", "device", "device sub_slices exclusive_pages",
           "the layout of memory that a device begins with: its own, or a preset of `MemoryPools`; `install_memory_pools` changes it"),
    number(Setting::MemoryMaxPage, "memory.max_page_bytes", "KILN_MEMORY_MAX_PAGE", "", std::uint64_t{2} << 20, kMostBytes,
           "the largest page that `memory.pools` `sub_slices` cuts in slices; else a quarter of the device's memory"),
    number(
        Setting::MemoryKeep, "memory.keep_bytes", "KILN_MEMORY_KEEP", "", 0, kMostBytes,
        "how many bytes of empty pages are kept for the next allocations; else a quarter of a GPU's memory, and up to 256 MiB on the CPU"),
    choice(Setting::MemoryPersistent, "memory.persistent", "KILN_MEMORY_PERSISTENT", "enabled", "enabled size_match disabled enforced",
           "what `PersistentMemory` means: windows of it, also what has the size of unused persistent memory, nothing, every allocation"),
    number(Setting::MemoryDeferred, "memory.deferred_frees", "KILN_MEMORY_DEFERRED", "64", 1, std::uint64_t{1} << 20,
           "how many pages that nobody needs are kept back before they are given to the device together"),
    number(Setting::MemoryDeferredBytes, "memory.deferred_bytes", "KILN_MEMORY_DEFERRED_BYTES", "67108864", 1, kMostBytes,
           "at how many bytes of them that is done whatever their number"),
    {Setting::Levels, "logging.levels", "KILN_LOG", Kind::Levels, "warning", 0, 0, "",
     "what the runtime says of itself: a level for all areas, then areas with levels of their own, as in `warning,compile=info`"},
    path(Setting::Sink, "logging.sink", "KILN_LOG_FILE", "stderr",
         "where it says it: `stderr`, or the path of a file, which is appended to"),
    path(Setting::Trace, "profiling.trace", "KILN_TRACE", "",
         "the file that the timeline of the whole process is written to at its end, for Perfetto; else there is none"),
    number(Setting::TraceOperations, "profiling.operations", "KILN_TRACE_OPERATIONS", "65536", 1, std::uint64_t{1} << 30,
           "how many operations of each device that timeline keeps; what is beyond is counted"),
    text(Setting::Nvtx, "", "KILN_NVTX",
         "NVTX ranges: `on` for those of `libnvToolsExt.so.1`, a library, or `off`; else where a profiler asks to be loaded"),
};
constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kRows); ++i)
    if (kRows[i].setting != static_cast<Setting>(i)) return false;
  return true;
}
static_assert(in_order() && std::size(kRows) == kSettings, "one row for each setting, in order");

}  // namespace

std::span<const SettingRow> settings() { return kRows; }
const SettingRow& row(Setting setting) { return kRows[static_cast<std::size_t>(setting)]; }

bool is_word(const SettingRow& row, std::string_view value) {
  if (value.empty() || value.find(' ') != std::string_view::npos) return false;
  return (" " + std::string(row.choices) + " ").find(" " + std::string(value) + " ") != std::string::npos;
}

std::string allowed(const SettingRow& row) {
  switch (row.kind) {
    case Kind::Number: return "a number from " + std::to_string(row.least) + " to " + std::to_string(row.most);
    case Kind::Choice: {
      std::string words;
      for (const char* c = row.choices; *c != 0; ++c) words += *c == ' ' ? std::string(", ") : std::string(1, *c);
      return "one of " + words;
    }
    case Kind::Levels: return log_levels_allowed();
    case Kind::Path: return *row.choices == 0 ? "a path" : std::string(row.choices) + " or a path";
    case Kind::Text: break;
  }
  return "a text";
}

}  // namespace kiln::rt
