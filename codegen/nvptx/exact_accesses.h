// No access to bytes that the kernel did not ask for.
#pragma once

namespace llvm {
class Pass;
}

namespace kiln::codegen::nvptx {

// LLVM's vectoriser fills gaps between adjacent accesses, and reads beyond the last one, where the alignment lets it; the backend then
// reads all of the vector. These may be bytes behind the end of a buffer, or bytes that nobody wrote. The pass, to be run directly behind
// the vectoriser, gives each such access back as the widest accesses of exactly its elements.
llvm::Pass* make_exact_accesses_pass();

}  // namespace kiln::codegen::nvptx
