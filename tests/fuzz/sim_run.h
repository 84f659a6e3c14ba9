// Random cases through the real runtime on devices of the simulated driver: allocation, copies, parameters, launch, late faults.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/generator.h"
#include "interp/interp.h"
#include "kiln/runtime/error.h"
#include "kiln/runtime/variant.h"

namespace kiln::fuzz {

// What of the choices on the simulated driver falls to a seed.
struct SimTurn {
  enum class Memory : std::uint8_t {
    Exact,    // adopted allocations that end where the buffer ends: the device finds every access beyond
    Guarded,  // the runtime's own, with a pattern around the buffer that nothing may change
  };
  int device = 0;  // H200 (sm_90), T4 (sm_75), A100 (sm_80)
  std::string order = "forward";
  std::uint64_t order_seed = 0;
  Memory memory = Memory::Exact;
  bool aligned = true;  // buffers at multiples of 16 bytes; else one element off
};
SimTurn sim_turn(std::uint64_t seed);
std::string text(const SimTurn& turn);  // "sim h200, forward, exact, aligned"

struct SimOutcome {
  std::vector<std::vector<std::uint8_t>> buffers;  // as they lie on the device, after a fault too
  std::optional<BoundsFault> fault;                // that the runtime reports for the trace
  std::vector<interp::Logged> log;                 // as the client's sink was given it
  std::string finding;                             // what went wrong, or empty: a refusal, a report of the simulated driver, a guard
  std::string ptx;                                 // that ran
};
// Whatever goes wrong, the next call finds devices that are well.
SimOutcome run_sim(const Variant& variant, const Case& c, bool checked, const SimTurn& turn);

}  // namespace kiln::fuzz
