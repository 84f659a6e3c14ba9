// Which GPUs the NVPTX lowering knows, the PTX version each one needs, and LLVM's machine for one of them.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kiln/runtime/compiler.h"

namespace llvm {
class TargetMachine;
}

namespace kiln::codegen::nvptx {

struct PtxTarget {
  std::string arch;            // "sm_90a"
  unsigned sm = 75;            // 90
  std::uint32_t version = 63;  // PTX ISA, 10 * major + minor: the lowest that has the architecture and everything we emit for it
  std::string version_reason;  // for people: what needs that version
};

// The oldest architecture that a kernel can be compiled for, and for people what needs it.
struct LowestArch {
  std::string name, reason;
};
LowestArch lowest_architecture(const ir::Prepared& kernel);

const std::vector<std::string>& architectures();  // ascending

// Throws CompileError: an unknown architecture (with the list), one below the kernel's requirement, a PTX version below what is needed.
PtxTarget choose_target(const ir::Prepared& kernel, const CompileOptions& options);

// Precondition: initialise_llvm() was called and `target` came from choose_target (LLVM ends the process on others).
std::unique_ptr<llvm::TargetMachine> make_machine(const PtxTarget& target);

}  // namespace kiln::codegen::nvptx
