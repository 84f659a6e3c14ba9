// The verifier: everything a backend may rely on. Runs before any backend; reports all findings, not the first.
#pragma once
#include "kiln/ir/diagnostic.h"
#include "kiln/ir/kernel.h"

namespace kiln::ir {

// What is verified: what an author wrote, or what passes made of it. Only the first is held to rules of style: a constant loop step of zero
// or below is a mistake in a source, and a legal program (one iteration at most) once folding has found out a step that was computed.
enum class Stage { Recorded, Transformed };

// Checks structure (ids in range, each value defined before and visible at its use, terminators last, yield where it belongs, break and
// continue inside a loop, no recursion of regions), types by the op table, types without arithmetic yet (a sentence), attributes,
// declarations (names, ranks, extents, shared and local sizes not 0, block size within limits, one dynamic shared memory), access rights (a
// store to an In, a load of an Out, an atomic on anything but InOut is refused), require in the root region and evaluable by the host,
// constant loop steps > 0, and barriers under uniform control (DESIGN 5, by analyze_uniformity). Empty: the kernel is good. O(size).
Diagnostics verify(const Kernel& kernel, Stage stage = Stage::Recorded);
// Throws IrError when verify finds something.
void verify_or_throw(const Kernel& kernel, Stage stage = Stage::Recorded);

}  // namespace kiln::ir
