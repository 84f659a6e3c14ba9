// Runs the PTX of a kernel on the simulated driver's engine, without driver or runtime, so that its results can be compared bit for bit
// with the interpreter's.
#pragma once
#include <cstdint>
#include <string>

#include "interp/interp.h"

namespace kiln::test {

// The launch that interp::run takes. `seed` varies the order in which blocks, warps and lanes run (0: forward, 1: reverse); a correct
// program does not care. Whatever the engine finds is `misuse`: accesses out of range, misaligned or of bytes that nobody wrote, races on
// shared and global memory, undefined uses of masks and barriers, reads of lanes that take no part, threads that hang; so is what
// inexact_float() finds.
interp::Outcome run_ptx(const std::string& ptx, const ir::Prepared& kernel, const interp::Launch& launch, std::uint64_t seed = 0);

}  // namespace kiln::test
