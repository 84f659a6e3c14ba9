// Executes the PTX that we generate, on the CPU and without any driver, so that its results can be compared bit for bit with the
// interpreter's. Written from the PTX ISA and strict where hardware is lenient: threads run one by one and meet only where an instruction
// makes them. What it refuses (as `misuse`): an access outside a buffer or misaligned; reading a register, local or shared memory that
// nobody wrote is not noticed. A warp instruction whose named lanes are not all there, at the same instruction, with the same mask; reading
// a lane that is not named; an aligned barrier that a warp does not reach whole; a block that is stuck. Instructions that our code
// generator never uses are unknown to it.
#pragma once
#include <cstdint>
#include <string>

#include "interp/interp.h"

namespace kiln::test {

// The launch that interp::run takes, on the PTX of the same kernel. `seed` varies the order in which threads run; a correct program does
// not care.
interp::Outcome run_ptx(const std::string& ptx, const ir::Prepared& kernel, const interp::Launch& launch, std::uint64_t seed = 0);

}  // namespace kiln::test
