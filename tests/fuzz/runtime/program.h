// A random program of the whole runtime: threads over streams, each with a world of its own and all with one that they share.
#pragma once
#include <cstdint>
#include <map>
#include <string>

#include "fuzz/runtime/faults.h"
#include "kiln/runtime/client.h"

namespace kiln::fuzz {

struct ProgramOptions {
  std::uint64_t seed = 1, operations = 1000;
  unsigned threads = 3, streams = 4;
  FaultKind faults = FaultKind::None;
  // The device is nobody else's, and so what is left of memory is this program's.
  bool alone = true;
  unsigned patience = 120;  // seconds without any operation that ends; then the process does (exit 3), with the last operations
  std::string repeat = {};  // how to repeat it, for that report
};
struct ProgramOutcome {
  std::string wrong;  // empty: nothing was
  std::map<std::string, std::uint64_t> counts;
};
// Runs it on the device. Thread-safe as long as the device is nobody else's.
ProgramOutcome run_program(const Client& client, const ProgramOptions& options);

}  // namespace kiln::fuzz
