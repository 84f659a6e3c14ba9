// What a local can hold at any time. Private to ir/.
#pragma once
#include <vector>

#include "analysis_bounds_prover.h"

namespace kiln::ir {

// Per slot of an integer or bool type a range that holds whatever was set last, in any thread, at any point; other slots: anything.
// Knows no conditions: it is for locals that loops change in a bounded way, as in s = 128; while (s > 0) { ...; s = s >> 1; }.
std::vector<Prover::Range> slot_ranges(const Kernel& kernel);

}  // namespace kiln::ir
