// LLVM's code generation, from optimised LLVM IR to text or an object, without the passes that a target's kernels have no use for.
#pragma once
#include <llvm/Support/CodeGen.h>

#include <span>
#include <string_view>

namespace llvm {
class Module;
class TargetMachine;
class raw_pwrite_stream;
}  // namespace llvm

namespace kiln::codegen {

// Writes what `module` becomes to `out`. `left_out`: passes, by the names that LLVM gives them (Pass::getPassName), that are not run.
// Throws CompileError when this LLVM cannot write that kind of file for the machine; builds with assertions also when a name is unknown to
// it.
void emit_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type, std::span<const std::string_view> left_out,
               llvm::raw_pwrite_stream& out);

}  // namespace kiln::codegen
