// Shared by the decoders of loads, stores and atomics. Private to the engine.
#pragma once
#include <optional>

#include "simcuda/ptx_decoder.h"

namespace kiln::simcuda::ptx {

// A state space that a memory instruction names.
std::optional<Space> take_memory_space(Decoder& d);
// Cache operators, eviction priorities, prefetch sizes and other hints. True when a cache policy operand follows.
bool take_hints(Decoder& d);
// .weak, .relaxed, .acquire, .release, .acq_rel, .volatile, .mmio and the scope. Fills op.atomic and op.fence.
void take_semantics(Decoder& d);
// Numbers the instruction's place in the workers' tables and notes what it may touch.
void count_memory_op(Decoder& d, unsigned size);

}  // namespace kiln::simcuda::ptx
