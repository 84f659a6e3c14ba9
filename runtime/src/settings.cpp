#include "src/settings.h"

#include <iterator>

#include "src/logging.h"

namespace kiln::rt {
namespace {

using Kind = SettingKind;

// What loads code has no key: whoever can put a file somewhere above the working directory must not choose what the process executes.
constexpr SettingRow kRows[] = {
    {Setting::Config, "", "KILN_CONFIG", Kind::Text, "", 0, 0, "",
     "the configuration file: its path, or `off` for none; else the first `kiln.json` in the working directory and those above it"},
    {Setting::Device, "device.default", "KILN_DEVICE", Kind::Text, "", 0, 0, "",
     "the device of `Client::default_client()`: `cpu`, `cpu:N`, `cuda` or `cuda:N`; else the first usable GPU, else the CPU"},
    {Setting::CpuWorkers, "device.cpu_workers", "KILN_CPU_WORKERS", Kind::Number, "", 1, 1024, "",
     "how many threads the CPU device runs kernels on; else one for each hardware thread"},
    {Setting::CudaLibrary, "", "KILN_CUDA_LIBRARY", Kind::Text, "", 0, 0, "",
     "the library of the CUDA driver; else `libcuda.so.1`, as the loader finds it"},
    {Setting::Codegen, "", "KILN_CODEGEN", Kind::Text, "", 0, 0, "",
     "the library of the code generator; else `libkiln_codegen.so` beside the runtime, or as the loader finds it"},
    {Setting::Parallelism, "compilation.parallelism", "KILN_COMPILE_JOBS", Kind::Number, "", 1, 1024, "",
     "how many queued kernels are compiled at a time; else one for each hardware thread"},
    {Setting::KernelLogBytes, "kernels.log_bytes", "KILN_LOG_BYTES", Kind::Number, "1048576", 0, std::uint64_t{1} << 40, "",
     "how many bytes of what its kernel logs a launch keeps; `Client::log_bytes()` changes it for a device"},
    {Setting::Levels, "logging.levels", "KILN_LOG", Kind::Levels, "warning", 0, 0, "",
     "what the runtime says of itself: a level for all areas, then areas with levels of their own, as in `warning,compile=info`"},
    {Setting::Sink, "logging.sink", "KILN_LOG_FILE", Kind::Path, "stderr", 0, 0, "stderr",
     "where it says it: `stderr`, or the path of a file, which is appended to"},
    {Setting::Trace, "profiling.trace", "KILN_TRACE", Kind::Path, "", 0, 0, "",
     "the file that the timeline of the whole process is written to at its end, for Perfetto; else there is none"},
    {Setting::Nvtx, "", "KILN_NVTX", Kind::Text, "", 0, 0, "",
     "NVTX ranges: `on` for those of `libnvToolsExt.so.1`, a library, or `off`; else where a profiler asks to be loaded"},
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
