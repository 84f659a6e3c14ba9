#include "target.h"

#include <llvm/MC/TargetRegistry.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Triple.h>

#include <algorithm>

namespace kiln::codegen::nvptx {
namespace {

struct Arch {
  const char* name;
  unsigned sm;
  std::uint32_t version;  // the first PTX ISA version with this target
};

// The lowest version is also the best: older drivers load it, and nothing that we emit needs more than its architecture's first version.
constexpr Arch kArchs[] = {
    {"sm_75", 75, 63},    {"sm_80", 80, 70},    {"sm_86", 86, 71},   {"sm_87", 87, 74},    {"sm_88", 88, 90},    {"sm_89", 89, 78},
    {"sm_90", 90, 78},    {"sm_90a", 90, 80},   {"sm_100", 100, 86}, {"sm_100a", 100, 86}, {"sm_100f", 100, 88}, {"sm_103", 103, 88},
    {"sm_103a", 103, 88}, {"sm_103f", 103, 88}, {"sm_110", 110, 90}, {"sm_110a", 110, 90}, {"sm_110f", 110, 90}, {"sm_120", 120, 87},
    {"sm_120a", 120, 87}, {"sm_120f", 120, 88}, {"sm_121", 121, 88}, {"sm_121a", 121, 88}, {"sm_121f", 121, 88},
};

std::string version_text(std::uint32_t version) { return std::to_string(version / 10) + "." + std::to_string(version % 10); }

std::string joined(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
  return text;
}

}  // namespace

const std::vector<std::string>& architectures() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Arch& arch : kArchs) all.emplace_back(arch.name);
    return all;
  }();
  return names;
}

PtxTarget choose_target(const ir::Prepared& kernel, const CompileOptions& options) {
  const std::string who = "kernel '" + kernel.kernel.name + "': ";
  const Arch* const arch = std::find_if(std::begin(kArchs), std::end(kArchs), [&](const Arch& a) { return options.arch == a.name; });
  if (arch == std::end(kArchs)) {
    throw CompileError(who + "unknown GPU architecture '" + options.arch + "'; known are " + joined(architectures()), true);
  }
  if (arch->sm < kernel.requirement.min_sm) {
    throw CompileError(who + "needs sm_" + std::to_string(kernel.requirement.min_sm) + " or newer for " + kernel.requirement.reason +
                           ", but was asked for " + options.arch,
                       true);
  }
  if (options.ptx_version != 0 && options.ptx_version < arch->version) {
    throw CompileError(who + "PTX " + version_text(options.ptx_version) + " is too old for " + options.arch + ", which needs PTX " +
                           version_text(arch->version) + " or newer",
                       true);
  }
  return {
      .arch = arch->name,
      .sm = arch->sm,
      .version = arch->version,
      .version_reason = std::string("the first PTX version with target ") + arch->name + "; no operation of the kernel needs a newer one"};
}

LowestArch lowest_architecture(const ir::Prepared& kernel) {
  const unsigned needed = kernel.requirement.min_sm;
  const Arch* const lowest = std::find_if(std::begin(kArchs), std::end(kArchs), [&](const Arch& a) { return a.sm >= needed; });
  const std::string name = lowest != std::end(kArchs) ? lowest->name : "sm_" + std::to_string(needed);
  if (!kernel.requirement.reason.empty()) return {name, kernel.requirement.reason};
  return {name, "the oldest architecture that Kiln compiles for; no operation of the kernel needs a newer one"};
}

std::unique_ptr<llvm::TargetMachine> make_machine(const PtxTarget& target) {
  const llvm::Triple triple("nvptx64-nvidia-cuda");
  std::string error;
  const llvm::Target* const backend = llvm::TargetRegistry::lookupTarget(triple, error);
  if (backend == nullptr) throw CompileError("this LLVM has no NVPTX backend: " + error, true);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;  // a product and a sum become fma in the IR or never
  // Default, not Aggressive: the same registers, faster, and smaller code for matmul (measured).
  return std::unique_ptr<llvm::TargetMachine>(backend->createTargetMachine(triple, target.arch, "+ptx" + std::to_string(target.version),
                                                                           options, llvm::Reloc::PIC_, std::nullopt,
                                                                           llvm::CodeGenOptLevel::Default));
}

}  // namespace kiln::codegen::nvptx
