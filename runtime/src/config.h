// The configuration of the process: what the environment says, else what the file says, else the defaults. The one place that reads any.
#pragma once
#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "kiln/runtime/configuration.h"
#include "src/settings.h"

namespace kiln::rt {

// A value that the file gives.
struct FileValue {
  std::string text;          // as it is told; of a path: absolute
  std::uint64_t number = 0;  // of a number
  unsigned line = 0;
};
struct ConfigFile {
  std::string path;  // empty: there is none
  std::array<std::optional<FileValue>, kSettings> values;
};
#pragma GCC visibility push(default)  // config_file.cpp is compiled with all else hidden
// Reads a text as the file's; `path` is for errors and for what is relative. Errors: rule Configuration, at PATH:LINE.
Result<ConfigFile> parse_config(const std::string& text, const std::string& path);
// The file that holds for a process: the one that KILN_CONFIG (`named`; empty: it is not set) names, else the first kiln.json in
// `directory` and those above it.
Result<ConfigFile> find_config(const std::string& named, const std::string& directory);
#pragma GCC visibility pop

// What is set, in one moment, and where it comes from. `variable` gives a variable's value, or null. A variable that is empty counts as not
// set. Errors: as parse_config; a variable of a value that it does not take.
using Variables = std::function<const char*(const char*)>;
Result<Configuration> read_configuration(const ConfigFile& file, const Variables& variable);

// Of this process. The file is read at the first call and never again; the variables each time. Whoever opens a device calls it first, and
// gives its error; it also sets the log up. O(settings). Thread-safe; holds no lock while it reads.
Result<void> check_configuration();

// A variable that is the system's and not Kiln's (HOME, XDG_CACHE_HOME); empty where it is not set.
std::string system_variable(const char* name);

// A value after check_configuration() was fine; of a variable that was set to nonsense since, the default.
std::string configured_text(Setting setting);                 // empty: not set
std::string configured_by(Setting setting);                   // what sets it: the variable's name, "FILE:LINE", or "default"
std::uint64_t configured_number(Setting setting);             // 0: not set
std::uint64_t configured_number_or_threads(Setting setting);  // one for each hardware thread where it is not set

}  // namespace kiln::rt
