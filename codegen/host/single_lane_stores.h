// A way around a defect of LLVM.
#pragma once
namespace llvm {
class Module;
}

namespace kiln::codegen::host {

// Masked stores of which one lane is known to be the only one become stores of that element. LLVM 22 does so itself, after it has taken
// the truncation of the value into the store, and then stores the element as wide as it was before: over its neighbours. After all passes
// on the IR.
void store_single_lanes(llvm::Module& module);

}  // namespace kiln::codegen::host
