// The host lowering's entry points: LLVM IR, our pass pipeline, an ELF object.
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Passes/StandardInstrumentations.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>

#include "host/emitter.h"
#include "host/single_lane_stores.h"
#include "large_kernels.h"
#include "llvm_emit.h"
#include "llvm_guard.h"

namespace kiln::codegen {
namespace {

// LLVM's default pipelines cost twice the time for the same code, and their vectoriser has nothing to do here.
constexpr const char* kPipeline =
    "function(sroa,early-cse,simplifycfg,instcombine<no-verify-fixpoint>,loop-mssa(loop-rotate,licm),loop(indvars),loop-unroll<O3>,"
    "instcombine<no-verify-fixpoint>,early-cse,infer-alignment,simplifycfg)";

struct Made {
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> target;
  std::string symbol;
  std::uint64_t context_bytes = 0, context_bytes_per_warp = 0;
  bool large = false;
};

// The samples have at most 43, and what is made of them does not depend on what follows.
constexpr std::size_t kManyBlocks = 64;

// Left out of large kernels. The first moves constants and addresses of all branches in front of the loop over warps, and the register
// allocator puts them back one by one: in a kernel of 400 branches that is nearly all of the time and most of the code. The second joins
// the blocks that split_long_blocks() made. (Loop strength reduction stays: without it a third less time for matmul, but sums over memory
// run 12 % longer.)
constexpr std::string_view kLeftOutOfLarge[] = {"Early Machine Loop Invariant Code Motion", "CodeGen Prepare"};

std::string in_words(const std::array<std::uint32_t, 3>& block) {
  if (block[0] == 0 && host::is_block_form(block)) return block[1] == 0 ? "a block of any shape" : "a row of any number of threads";
  return "a block of " + std::to_string(block[0]) + " x " + std::to_string(block[1]) + " x " + std::to_string(block[2]) + " threads";
}

void check_block(const ir::Kernel& k, const CompileOptions& options) {
  if (!host::is_block_form(options.block)) {
    throw CompileError("kernel '" + k.name + "': " + in_words(options.block) +
                           " cannot be compiled for the CPU; a block has 1 to 1024 threads, and code whose block is given at launch is " +
                           "that for 0 x 1 x 1 (a row of threads) or 0 x 0 x 0 (any shape)",
                       false);
  }
  if (k.has_block_size() && k.block_size != options.block) {
    throw CompileError("kernel '" + k.name + "' declares " + in_words(k.block_size) + " and is compiled for no other; " +
                           in_words(options.block) + " was asked for",
                       false);
  }
}

Made make(llvm::LLVMContext& context, const ir::Prepared& prepared, const CompileOptions& options, const host::Level& level) {
  Made made;
  made.symbol = ir::symbol_name(prepared.kernel.name);
  made.target = host::make_target_machine(level);
  made.module = std::make_unique<llvm::Module>(made.symbol, context);
  made.module->setTargetTriple(made.target->getTargetTriple());
  made.module->setDataLayout(made.target->createDataLayout());
  made.module->setPICLevel(llvm::PICLevel::BigPIC);
  host::Emitter emitter(context, *made.module, prepared, options, level);
  emitter.run(made.symbol);
  made.context_bytes = emitter.context_bytes();
  made.context_bytes_per_warp = emitter.context_bytes_per_warp();
  for (llvm::Function& f : *made.module) {
    if (!f.isIntrinsic()) f.setDSOLocal(true);
  }
#ifndef NDEBUG
  constexpr bool kVerify = true;
#else
  const bool kVerify = std::getenv("KILN_VERIFY_LLVM") != nullptr;
#endif
  std::string broken;
  llvm::raw_string_ostream out(broken);
  if (kVerify && llvm::verifyModule(*made.module, &out)) {
    throw CompileError("kernel '" + prepared.kernel.name +
                           "': the code generator made LLVM IR that is not well-formed (a defect; please report it): " + broken,
                       false);
  }
  llvm::PassBuilder builder(made.target.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  llvm::ModulePassManager passes;
  if (llvm::Error e = builder.parsePassPipeline(passes, kPipeline))
    throw CompileError("this LLVM does not know our pass pipeline: " + llvm::toString(std::move(e)), false);
  passes.run(*made.module, modules);
  host::store_single_lanes(*made.module);
  made.large = is_large(*made.module, kManyBlocks);
  if (made.large) {
    for (llvm::Function& f : *made.module) {
      split_long_blocks(f);
      shorten_lives(f);
    }
  }
  return made;
}

// What the runtime's loader resolves; anything else would fail at load time, far from here.
void check_imports(const std::string& kernel, const std::string& code) {
  auto object = llvm::object::ObjectFile::createObjectFile(llvm::MemoryBufferRef(code, kernel));
  if (!object)
    throw CompileError("kernel '" + kernel + "': LLVM made an object that it cannot read: " + llvm::toString(object.takeError()), false);
  for (const llvm::object::SymbolRef& symbol : (*object)->symbols()) {
    llvm::Expected<std::uint32_t> flags = symbol.getFlags();
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!flags || !name) {
      llvm::consumeError(flags.takeError());
      llvm::consumeError(name.takeError());
      continue;
    }
    if (!(*flags & llvm::object::SymbolRef::SF_Undefined) || name->empty()) continue;
    if (*name == "memcpy" || *name == "memmove" || *name == "memset") continue;
    throw CompileError("kernel '" + kernel + "': the code for the CPU needs '" + name->str() +
                           "', which a kernel cannot import (a defect of the code generator; please report it)",
                       false);
  }
}

}  // namespace

CompiledCode compile_host(const ir::Prepared& prepared, const CompileOptions& options) {
  const host::Level level = host::find_level(options.arch);
  check_block(prepared.kernel, options);
  CompiledCode result;
  guarded(prepared.kernel.name, [&](llvm::LLVMContext& context) {
    const Made made = make(context, prepared, options, level);
    llvm::SmallString<0> object;
    llvm::raw_svector_ostream out(object);
    emit_code(*made.module, *made.target, llvm::CodeGenFileType::ObjectFile,
              made.large ? std::span(kLeftOutOfLarge) : std::span<const std::string_view>(), out);
    result.code = object.str().str();
    result.symbol = made.symbol;
    result.context_bytes = made.context_bytes;
    result.context_bytes_per_warp = made.context_bytes_per_warp;
    check_imports(prepared.kernel.name, result.code);
  });
  result.static_shared_bytes = prepared.shared.static_bytes;
  return result;
}

std::string host_llvm_ir(const ir::Prepared& prepared, const CompileOptions& options) {
  const host::Level level = host::find_level(options.arch);
  check_block(prepared.kernel, options);
  std::string text;
  guarded(prepared.kernel.name, [&](llvm::LLVMContext& context) {
    const Made made = make(context, prepared, options, level);
    llvm::raw_string_ostream out(text);
    made.module->print(out, nullptr);
  });
  return text;
}

TargetReasons host_reasons() {
  TargetReasons reasons;
  reasons.lowest_arch = "x86-64";
  reasons.lowest_arch_reason = "every kernel has code for every CPU level";
  return reasons;
}

}  // namespace kiln::codegen
