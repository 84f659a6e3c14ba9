// LLVM's ways to fail, turned into CompileError. Both lowerings do all their work on LLVM inside guarded().
#pragma once
#include <functional>
#include <string>

namespace llvm {
class LLVMContext;
}

namespace kiln::codegen {

// Registers the NVPTX and the native target and installs the fatal error handler. Once a process; cheap afterwards; thread-safe.
void initialise_llvm();

// Runs `work` with a context of its own, on a thread with a big stack, and waits for it. Error diagnostics that LLVM reports to the
// context, and LLVM's fatal errors (which would end the process), come out as CompileError with the kernel's name in front; other
// exceptions pass. Thread-safe, may not be nested. After a fatal error LLVM stays usable; what it held for this compilation may be leaked.
void guarded(const std::string& kernel, const std::function<void(llvm::LLVMContext&)>& work);

}  // namespace kiln::codegen
