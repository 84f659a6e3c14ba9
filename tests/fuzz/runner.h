// Runs one random case on the interpreter, through the host code generator and on simulated devices, compares bits, and makes a failing
// case small.
#pragma once
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fuzz/generator.h"
#include "fuzz/sim_run.h"
#include "interp/interp.h"
#include "kiln/ir/passes.h"

namespace kiln::fuzz {

struct Outputs {
  std::vector<std::vector<std::uint8_t>> buffers;  // after the launch, per buffer parameter
  std::optional<ir::FaultRecord> fault;
  std::vector<ir::FaultRecord> faults;  // the interpreter's: every fault, unless there were very many
  bool all_faults = true;
  std::vector<interp::Logged> log;
  std::vector<std::string> misuse;  // the interpreter's
};

Outputs run_interpreter(const ir::Prepared& kernel, const Case& c);
// Executes PTX made from `kernel`; `seed` varies the order of the threads.
Outputs run_ptx(const std::string& ptx, const ir::Prepared& kernel, const Case& c, std::uint64_t seed);
// What the code is told of the block before it is launched.
enum class BlockForm : std::uint8_t { Exact, Row, Any };
// The form that is asked for, or the next one that a case can have: a row has one dimension, and a block that is declared is exact.
BlockForm block_form(const Case& c, BlockForm wanted);
// Compiles for `arch` and runs all blocks on this thread. `aligned` promises 16-byte aligned buffers; otherwise they are laid one element
// off.
Outputs run_host(const ir::Prepared& kernel, const Case& c, const std::string& arch, bool aligned, BlockForm form = BlockForm::Exact);

// The host levels this machine can execute, lowest first.
std::vector<std::string> host_levels();

// The first difference as a sentence, or nothing. NaNs of float buffers compare equal; faults compare by being there, logs by
// what each thread said.
std::optional<std::string> difference(const Case& c, const Outputs& a, const Outputs& b);

struct CheckOptions {
  std::vector<std::string> levels;        // host levels to run
  bool checked = true, unchecked = true;  // programs to run; a case that may fault has the checked one only
  bool aligned = true;                    // buffers at multiples of 16 bytes and the promise of it, on the first level; then in turn
  BlockForm block = BlockForm::Exact;     // of the host code, where the case can have it
  bool sim = false;                       // also through the runtime on a simulated device
  SimTurn sim_turn{};
  bool ptx = false;      // also execute the PTX for sm_75 and sm_90
  bool assemble = true;  // and assemble it, where ptxas is
};
// The share of work that falls to a seed: levels, modes and alignment in turn, so that each gets the same number of seeds; and of the forms
// of a block the exact one six times of eight.
CheckOptions options_in_turn(std::uint64_t seed);
// The size of the kernel of a seed, likewise.
Shape shape_in_turn(std::uint64_t seed);
// Everything that must hold for a case; the first thing that does not, as text. Never throws for a wrong kernel: that is a finding too.
std::optional<std::string> check(const Case& c, const CheckOptions& options);

// A smaller case for which `fails` still holds: greedy removal of operations and regions until nothing more goes.
Case reduce(Case c, const std::function<bool(const Case&)>& fails);

}  // namespace kiln::fuzz
