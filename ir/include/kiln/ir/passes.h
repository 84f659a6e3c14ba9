// Transformations. Each keeps the kernel valid and keeps its bits (DESIGN 5). Each is idempotent. The order is prepare()'s: contraction
// looks at the IR as recorded, so a kernel that was folded since must not be contracted, and so not be prepared, again.
#pragma once
#include "kiln/ir/analysis.h"
#include "kiln/ir/diagnostic.h"
#include "kiln/ir/kernel.h"
#include "kiln/ir/param_layout.h"

namespace kiln::ir {

void contract(Kernel& kernel);  // a*b+c -> fma by the rule of DESIGN 5, when options.contraction; x/y -> x * (1/y) of f32 with fast_math
void fold_and_simplify(Kernel& kernel);  // constants, identities that keep bits, known conditions, empty regions
void eliminate_common(Kernel& kernel);   // pure operations, scoped by region
void eliminate_dead(Kernel& kernel);     // unused pure operations, unused loads that cannot be out of range, slots never read
void expand_math(Kernel& kernel);        // math functions and float rem into plain operations, from ir/math/
void expand_float8(Kernel& kernel);      // conversions of e4m3 and e5m2 into operations of f32 and f64; before expand_halves
void expand_halves(Kernel& kernel);      // operations of f16 and bf16 into those of f32 and f64; after contract

// Where each shared memory lies in the block's static shared memory.
struct SharedLayout {
  std::vector<std::uint64_t> offset;  // per mem, bytes; kNone-extended (~0) for other spaces and for dynamic memory
  std::uint64_t static_bytes = 0;
  std::uint32_t dynamic_mem = kNone;  // the dynamic shared memory, laid at static_bytes rounded up to 16
};
SharedLayout layout_shared(const Kernel& kernel);  // each array aligned to 16

// A kernel ready for any backend, the interpreter included: everything device-independent has happened, once.
struct Prepared {
  Kernel kernel;                 // verified, compacted, math expanded, bounds decided
  std::vector<Visibility> io;    // per buffer parameter
  std::vector<FaultSite> sites;  // of the accesses that stayed Checked, of checks and traps
  std::vector<LogSite> logs;     // of what is logged
  SharedLayout shared;
  Requirement requirement;
  IndexUse index_use;
};
struct PrepareOptions {
  enum class Mode : std::uint8_t { AsKernel, Checked, Unchecked } mode = Mode::AsKernel;
};
// Runs verify, the passes in the order of DESIGN 6, verify again. Throws IrError with all findings (also: a write to a declared In that is
// proven, a visibility that contradicts the declaration). Thread-safe.
Prepared prepare(const Kernel& recorded, const PrepareOptions& options = {});

}  // namespace kiln::ir
