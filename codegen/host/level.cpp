#include "host/level.h"

#include <array>

namespace kiln::codegen::host {
namespace {

const std::array<Level, 4>& levels() {
  static const std::array<Level, 4> all = {Level{.cpu = "x86-64"}, Level{.cpu = "x86-64-v2", .sse41 = true},
                                           Level{.cpu = "x86-64-v3", .sse41 = true, .fma = true, .f16c = true},
                                           Level{.cpu = "x86-64-v4", .sse41 = true, .fma = true, .f16c = true, .avx512 = true}};
  return all;
}

}  // namespace

Level find_level(const std::string& arch) {
  std::string list;
  for (const Level& level : levels()) {
    if (level.cpu == arch) return level;
    list += (list.empty() ? "" : ", ") + level.cpu;
  }
  throw CompileError("unknown CPU level '" + arch + "'; known: " + list, false);
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(const Level& level) {
  const llvm::Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (target == nullptr) throw CompileError("this LLVM cannot make code for x86-64: " + error, true);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, level.cpu, "", options, llvm::Reloc::PIC_,
                                                                          llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
}

}  // namespace kiln::codegen::host
