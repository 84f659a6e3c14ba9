#include "llvm_emit.h"

#include <llvm/CodeGen/MachineFunctionPass.h>
#include <llvm/CodeGen/MachineModuleInfo.h>
#include <llvm/CodeGen/Passes.h>
#include <llvm/CodeGen/TargetPassConfig.h>

#include <algorithm>
#include <vector>

#include "llvm_guard.h"

namespace kiln::codegen {
namespace {

// Passes of both targets for which a kernel has nothing: no vector library, no exceptions, no garbage collection, no instrumentation, no
// stack that an attacker could reach.
constexpr std::string_view kNothingInKernels[] = {
    "Type-Based Alias Analysis",
    "Canonicalize Freeze Instructions in Loops",
    "Merge contiguous icmps into a memcmp",
    "Expand memcmp() to load/stores",
    "Lower Garbage Collection Instructions",
    "Shadow Stack GC Lowering",
    "Replace intrinsics with calls to vector library",
    "Partially inline calls to library functions",
    "Instrument function entry/exit with calls to e.g. mcount() (post inlining)",
    "ObjC ARC contraction",
    "Prepare callbr",
    "Safe Stack instrumentation pass",
    "Insert stack protectors",
    "Remove Redundant DEBUG_VALUE analysis",
    "Fixup Statepoint Caller Saved",
    "Analyze Machine Code For Garbage Collection",
    "Insert fentry calls",
    "Insert XRay ops",
    "Live DEBUG_VALUE analysis",
    "Machine Sanitizer Binary Metadata",
    "Stack Frame Layout Analysis",
};

// Takes the place of the pass manager that TargetPassConfig fills: LLVM's own switches for leaving passes out are options of the whole
// process, which belongs to others too.
class Chosen final : public llvm::legacy::PassManagerBase {
 public:
  Chosen(llvm::legacy::PassManager& into, std::span<const std::string_view> left_out, const AddedPass& added)
      : into_(into), left_out_(std::begin(kNothingInKernels), std::end(kNothingInKernels)), added_(added) {
    left_out_.insert(left_out_.end(), left_out.begin(), left_out.end());
    met_.resize(left_out_.size());
  }

  void add(llvm::Pass* pass) override {
    const auto it = std::find(left_out_.begin(), left_out_.end(), std::string_view(pass->getPassName()));
    if (it == left_out_.end()) {
      const bool before_ours = added_.make != nullptr && std::string_view(pass->getPassName()) == added_.behind;
      into_.add(pass);
      if (before_ours) into_.add(added_.make());
      ours_added_ = ours_added_ || before_ours;
      return;
    }
    met_[static_cast<std::size_t>(it - left_out_.begin())] = true;
    delete pass;
  }

  void check() const {
    if (added_.make != nullptr && !ours_added_)
      throw CompileError("this LLVM's code generation has no pass '" + std::string(added_.behind) + "', behind which ours must run", false);
#ifndef NDEBUG
    for (std::size_t i = 0; i < left_out_.size(); ++i) {
      if (!met_[i]) throw CompileError("this LLVM's code generation has no pass '" + std::string(left_out_[i]) + "' to leave out", false);
    }
#endif
  }

 private:
  llvm::legacy::PassManager& into_;
  std::vector<std::string_view> left_out_;
  std::vector<bool> met_;  // per name
  const AddedPass added_;
  bool ours_added_ = false;
};

}  // namespace

// What TargetMachine::addPassesToEmitFile() does, through Chosen.
void emit_code(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type, std::span<const std::string_view> left_out,
               llvm::raw_pwrite_stream& out, const AddedPass& added) {
  llvm::legacy::PassManager passes;
  Chosen chosen(passes, left_out, added);
  auto* const modules = new llvm::MachineModuleInfoWrapperPass(&machine);
  llvm::TargetPassConfig* const config = machine.createPassConfig(chosen);
  config->setDisableVerify(true);
  passes.add(config);
  passes.add(modules);
  bool failed = config->addISelPasses();
  if (!failed) {
    config->addMachinePasses();
    config->setInitialized();
    failed = machine.addAsmPrinter(chosen, out, nullptr, type, modules->getMMI().getContext());
  }
  if (failed) throw CompileError("this LLVM cannot write code for " + machine.getTargetTriple().str(), true);
  chosen.check();
  passes.add(llvm::createFreeMachineFunctionPass());
  passes.run(module);
}

}  // namespace kiln::codegen
