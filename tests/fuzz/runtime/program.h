// A random program of the whole runtime: threads over streams, each with a world of its own and all with one that they share.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "kiln/runtime/client.h"

namespace kiln::fuzz {

struct ProgramOptions {
  std::uint64_t seed = 1, operations = 1000;
  unsigned threads = 3, streams = 4;
  bool driver_faults = false;
};
struct ProgramOutcome {
  std::string wrong;  // empty: nothing was
  std::map<std::string, std::uint64_t> counts;
};
// Runs it on the device. Thread-safe as long as the device is nobody else's.
ProgramOutcome run_program(const Client& client, const ProgramOptions& options);

}  // namespace kiln::fuzz
