// LLVM's code generation, from optimised LLVM IR to text or an object, without the passes that a target's kernels have no use for.
#pragma once
#include <llvm/Support/CodeGen.h>

#include <span>
#include <string_view>

namespace llvm {
class Module;
class Pass;
class TargetMachine;
class raw_pwrite_stream;
}  // namespace llvm

namespace kiln::codegen {

// A pass of ours, which runs directly behind one of LLVM's.
struct AddedPass {
  std::string_view behind;
  llvm::Pass* (*make)() = nullptr;
};

// Writes what `module` becomes to `out`. `left_out`: passes, by the names that LLVM gives them (Pass::getPassName), that are not run.
// Throws CompileError when this LLVM cannot write that kind of file for the machine or has no pass for ours to run behind; builds with
// assertions also when a name in `left_out` is unknown to it.
void emit_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type, std::span<const std::string_view> left_out,
               llvm::raw_pwrite_stream& out, const AddedPass& added = {});

}  // namespace kiln::codegen
