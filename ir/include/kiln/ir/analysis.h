// Analyses over a verified kernel. Pure functions; results are indexed by the ids of the kernel given.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::ir {

// --- visibility: what a kernel does to each buffer ----------------------------------------------------------------
enum class Visibility : std::uint8_t { Dead, ReadOnly, WriteOnly, ReadWrite };
constexpr bool reads(Visibility v) { return v == Visibility::ReadOnly || v == Visibility::ReadWrite; }
constexpr bool writes(Visibility v) { return v == Visibility::WriteOnly || v == Visibility::ReadWrite; }
// Per buffer parameter, in the order of buffer parameters (scalars skipped). Wide when unsure.
std::vector<Visibility> analyze_visibility(const Kernel& kernel);
// Per mem: is it touched by an atomic anywhere.
std::vector<bool> atomic_mems(const Kernel& kernel);

// --- uniformity ------------------------------------------------------------------------------------------------------
// "Uniform at level L" means: all threads of one L that execute the operation together (same iteration of every enclosing loop) hold the
// same value.
struct Uniformity {
  std::vector<Level> value;  // per op id; Thread for operations without a result
  std::vector<Level> slot;   // per slot
  // Per region: the largest group whose not-yet-returned threads execute this region together or not at all. The body is Grid. A region
  // under a condition uniform at level L gets max(parent, L); a loop's regions also count every break and continue of that loop that not
  // all threads of the group take, wherever it stands in the loop. Returns do not count. A block barrier needs a region <= Block.
  std::vector<Level> region;
};
Uniformity analyze_uniformity(const Kernel& kernel);

// --- bounds -----------------------------------------------------------------------------------------------------------
// Sets Op::bounds of every access: Proven where guards, loop ranges, requires, launch facts (thread_id < block_dim, a declared block size)
// and constants show every coordinate below its extent, else Checked. In an unchecked kernel everything becomes Proven (the author's word).
// Returns how many accesses stay Checked.
std::size_t decide_bounds(Kernel& kernel);

// --- requirements -------------------------------------------------------------------------------------------------------
struct Requirement {
  unsigned min_sm = 75;  // 75, 80, 90 ...
  std::string reason;    // "redux of atomic_add f64" ...: operation and place; empty when nothing special
};
Requirement analyze_requirements(const Kernel& kernel);

// What a launch must check because the kernel uses 32-bit forms.
struct IndexUse {
  std::array<bool, 3> global_id32{};                 // per axis: grid * block must be <= 2^32
  std::vector<std::array<bool, kMaxRank>> extent32;  // per mem and dimension: extent must be < 2^32
  std::vector<bool> size32;                          // per mem: element count must be < 2^32
};
IndexUse analyze_index_use(const Kernel& kernel);

}  // namespace kiln::ir
