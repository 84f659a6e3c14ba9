// Kernels of thousands of operations: what keeps the time of LLVM's code generation near linear in their size.
#pragma once
#include <cstddef>

namespace llvm {
class Function;
class Module;
}  // namespace llvm

namespace kiln::codegen {

// Whether some function has more than `many_blocks` or thousands of instructions, more than the code generation of that target takes
// without care.
bool is_large(const llvm::Module& module, std::size_t many_blocks);

// Cuts blocks of thousands of instructions into shorter ones. To be run behind all passes that would join them again.
void split_long_blocks(llvm::Function& f);

// Values that are live in many blocks become variables on the stack: stored where they are made, loaded once in each block that uses them.
// For targets with registers to allocate, behind all passes that would undo it.
void shorten_lives(llvm::Function& f);

}  // namespace kiln::codegen
