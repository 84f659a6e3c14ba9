// From a prepared kernel to PTX text: lowering, our short pipeline, LLVM's backend, and a look at what came out.
#include <llvm/Analysis/CGSCCPassManager.h>
#include <llvm/Analysis/LoopAnalysisManager.h>
#include <llvm/IR/Verifier.h>

#include "backend.h"
#include "exact_accesses.h"
#include "large_kernels.h"
#include "llvm_emit.h"
#include "llvm_guard.h"
#include "lowering.h"
#include "target.h"

namespace kiln::codegen {

const std::vector<std::string>& ptx_architectures() { return nvptx::architectures(); }

namespace {

using nvptx::PtxTarget;

// The same registers and instructions as default<O3> in half the time. There is no inliner: the one function besides the kernel stays
// outlined.
constexpr const char* kPipeline =
    "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),loop(indvars),loop-unroll<O3>,"
    "instcombine<no-verify-fixpoint>,infer-alignment,simplifycfg)";

std::string printed(const llvm::Module& module) {
  std::string text;
  llvm::raw_string_ostream out(text);
  module.print(out, nullptr);
  return text;
}

struct Lowered {
  std::unique_ptr<llvm::Module> module;
  std::string symbol;
  std::uint64_t static_shared_bytes = 0;
  std::vector<TargetReasons::Choice> choices;
};

Lowered lower(llvm::LLVMContext& context, const ir::Prepared& kernel, const CompileOptions& options, const PtxTarget& target,
              llvm::TargetMachine& machine) {
  Lowered lowered{.module = std::make_unique<llvm::Module>(kernel.kernel.name, context), .symbol = {}, .choices = {}};
  lowered.module->setTargetTriple(machine.getTargetTriple());
  lowered.module->setDataLayout(machine.createDataLayout());
  nvptx::Lowering lowering(*lowered.module, kernel, options, target);
  lowering.run();
  lowered.symbol = lowering.symbol();
  lowered.static_shared_bytes = lowering.static_shared_bytes();
  lowered.choices = lowering.choices();
  std::string problem;
  llvm::raw_string_ostream out(problem);
  if (llvm::verifyModule(*lowered.module, &out)) {
    throw CompileError(
        "kernel '" + kernel.kernel.name + "': the NVPTX lowering made invalid LLVM IR (a defect of the code generator): " + problem, false);
  }
  return lowered;
}

void optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);  // with the machine: it knows what diverges
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error error = builder.parsePassPipeline(passes, kPipeline)) {
    throw CompileError("this LLVM does not know our pass pipeline: " + llvm::toString(std::move(error)), false);
  }
  passes.run(module, modules);
}

// What ptxas does again (placing blocks excepted: it is no longer a choice there), and what only other languages or targets need. Half of
// the time of code generation; the PTX of the samples has as many instructions or fewer.
constexpr std::string_view kLeftOut[] = {
    // Nothing in a kernel for them.
    "Replace occurrences of __nvvm_reflect() calls with 0/1",
    "Expand variadic functions",
    "Lower ctors and dtors for NVPTX",
    "Lower invoke and unwind, for unwindless code generators",
    "NVPTX specific alloca hoisting",
    // For machines with a fixed number of registers, or that run PTX as it is written.
    "Constant Hoisting",
    "Loop Strength Reduction",
    "Merge disjoint stack slots",
    "Local Stack Slot Allocation",
    "Machine Instruction Scheduler",
    "Stack Slot Coloring",
    "Early Machine Loop Invariant Code Motion",
    "Machine code sinking",
    "Early Tail Duplication",
    "Control Flow Optimizer",
    // Nothing is left for them after our own pipeline.
    "Nary reassociation",
    "Straight line strength reduction",
    "Optimize machine instruction PHIs",
    "NVPTX IR Peephole",
};

// Each change that it makes to the control flow has it begin the function again: below so many blocks that is no matter, and it saves
// instructions.
constexpr std::size_t kManyBlocks = 512;
constexpr std::string_view kLeftOutOfLarge = "CodeGen Prepare";

std::string assemble(llvm::Module& module, llvm::TargetMachine& machine) {
  std::vector<std::string_view> left_out(std::begin(kLeftOut), std::end(kLeftOut));
  if (is_large(module, kManyBlocks)) {
    left_out.push_back(kLeftOutOfLarge);
    for (llvm::Function& f : module) split_long_blocks(f);
  }
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream out(text);
  emit_code(module, machine, llvm::CodeGenFileType::AssemblyFile, left_out, out,
            {.behind = "GPU Load and Store Vectorizer", .make = nvptx::make_exact_accesses_pass});
  std::string ptx(text.str());
  // With lines on, LLVM also writes a debug section without anything in it. Nobody reads it, and readers of PTX may stumble over it.
  constexpr std::string_view kEmptySection = "\t.section\t.debug_macinfo\t{\t}\n";
  if (const std::size_t at = ptx.find(kEmptySection); at != std::string::npos) ptx.erase(at, kEmptySection.size());
  return ptx;
}

// LLVM reports some problems by printing something else than was asked for.
void inspect(const std::string& ptx, const std::string& kernel, const std::string& symbol, const PtxTarget& target) {
  const auto wants = [&](const std::string& what, bool there) {
    if ((ptx.find(what) != std::string::npos) == there) return;
    throw CompileError("kernel '" + kernel + "': the PTX that LLVM wrote should " + (there ? "" : "not ") + "contain '" + what +
                           "' (a defect of the code generator)",
                       false);
  };
  wants(".version " + std::to_string(target.version / 10) + "." + std::to_string(target.version % 10) + "\n", true);
  wants(".target " + target.arch + "\n", true);
  wants(".entry " + symbol + "(", true);
  wants(".extern .func", false);
}

template <class Work>
void compile(const ir::Prepared& kernel, const CompileOptions& options, Work&& work) {
  const PtxTarget target = nvptx::choose_target(kernel, options);
  guarded(kernel.kernel.name, [&](llvm::LLVMContext& context) {
    const std::unique_ptr<llvm::TargetMachine> machine = nvptx::make_machine(target);
    Lowered lowered = lower(context, kernel, options, target, *machine);
    optimise(*lowered.module, *machine);
    work(lowered, *machine, target);
  });
}

}  // namespace

CompiledCode compile_ptx(const ir::Prepared& kernel, const CompileOptions& options) {
  CompiledCode code;
  compile(kernel, options, [&](Lowered& lowered, llvm::TargetMachine& machine, const PtxTarget& target) {
    code.code = assemble(*lowered.module, machine);
    code.symbol = lowered.symbol;
    code.ptx_version = target.version;
    code.static_shared_bytes = lowered.static_shared_bytes;
    inspect(code.code, kernel.kernel.name, code.symbol, target);
  });
  return code;
}

std::string ptx_llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) {
  std::string text;
  compile(kernel, options, [&](Lowered& lowered, llvm::TargetMachine&, const PtxTarget&) { text = printed(*lowered.module); });
  return text;
}

TargetReasons ptx_reasons(const ir::Prepared& kernel, const CompileOptions& options) {
  const PtxTarget target = nvptx::choose_target(kernel, options);
  const nvptx::LowestArch lowest = nvptx::lowest_architecture(kernel);
  TargetReasons reasons{.lowest_arch = lowest.name,
                        .lowest_arch_reason = lowest.reason,
                        .ptx_version = target.version,
                        .ptx_version_reason = target.version_reason,
                        .choices = {}};
  guarded(kernel.kernel.name, [&](llvm::LLVMContext& context) {
    const std::unique_ptr<llvm::TargetMachine> machine = nvptx::make_machine(target);
    reasons.choices = lower(context, kernel, options, target, *machine).choices;
  });
  return reasons;
}

}  // namespace kiln::codegen
