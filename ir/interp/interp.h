// The IR interpreter: the third judge. One warp at a time with explicit masks, plain and slow. Executes ir::Prepared with the meaning of
// DESIGN 5, checks every access whatever the mode, and reports what a correct program never does.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kiln/ir/param_layout.h"
#include "kiln/ir/passes.h"

namespace kiln::interp {

// One argument in signature order.
struct Arg {
  bool is_buffer = false;
  std::vector<std::uint8_t>* bytes = nullptr;   // buffers; two arguments may share one vector
  std::uint64_t byte_offset = 0;                // of the view within *bytes
  std::vector<std::uint64_t> extents, strides;  // strides only for strided buffers
  std::uint64_t bits = 0;                       // scalars
};

struct Launch {
  std::uint32_t grid[3] = {1, 1, 1}, block[3] = {1, 1, 1};
  std::uint32_t dynamic_shared_bytes = 0;
  std::vector<Arg> args;
  std::uint64_t step_limit = 2'000'000'000;  // operations x warps; beyond: an error in `misuse`
};

// A line that a thread logged.
struct Logged {
  std::uint32_t site = 0;  // index into ir::Prepared::logs
  std::uint32_t block[3] = {0, 0, 0}, thread[3] = {0, 0, 0};
  std::string text;
};

struct Outcome {
  std::optional<ir::FaultRecord> fault;  // the first out-of-range access of a checked kernel
  // All of them, up to a bound: a device reports some one of these. all_faults says that none is missing.
  std::vector<ir::FaultRecord> faults;
  bool all_faults = true;
  std::vector<Logged> log;  // of each thread in its order
  // What a race-free, terminating program never does, one sentence each with kernel and place: an out-of-range access in an unchecked
  // kernel or proven access (a wrong proof), reading shared or local memory never written, two threads touching a cell without a barrier
  // between (one writing), a divergent barrier, a require that is false, the step limit.
  std::vector<std::string> misuse;
};

// Runs every block in ascending order. Shared and local memory start as 0xFF bytes.
Outcome run(const ir::Prepared& kernel, const Launch& launch);

}  // namespace kiln::interp
