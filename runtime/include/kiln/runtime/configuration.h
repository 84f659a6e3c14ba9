// The configuration of the process, for reports: every setting with its value and where that came from. docs/configuration.md has them.
#pragma once
#include <string>
#include <vector>

#include "kiln/runtime/error.h"

namespace kiln {

struct ConfiguredSetting {
  std::string key;       // "compilation.parallelism"; empty: only a variable sets it
  std::string variable;  // "KILN_COMPILE_JOBS"; empty: only the file sets it
  std::string value;     // what holds; empty where nothing is set and there is no default
  std::string from;      // "default", "kiln.json:3", the variable's name
  std::string allowed, meaning;
};
struct Configuration {
  std::string file;  // empty: there is none
  std::vector<ConfiguredSetting> settings;
};

// What holds now. The file is read once in a process, the variables each time. Errors (rule Configuration): the file is not as it should
// be, or a variable; every operation that opens a device fails with the same error then. Thread-safe.
Result<Configuration> configuration();

}  // namespace kiln
