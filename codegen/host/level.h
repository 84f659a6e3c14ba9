// The CPU levels that host code is made for.
#pragma once
#include <memory>
#include <string>

namespace llvm {
class TargetMachine;
}

namespace kiln::codegen::host {

struct Level {
  std::string cpu;      // LLVM's name, which is ours too
  bool sse41 = false;   // rounding instructions
  bool fma = false;     // v3 and up
  bool f16c = false;    // v3 and up: conversions between f16 and f32
  bool avx512 = false;  // v4
};

// Throws CompileError, with the list, when `arch` is none of them.
Level find_level(const std::string& arch);
// Position independent, small code model, no floating-point contraction. LLVM must be initialised.
std::unique_ptr<llvm::TargetMachine> make_target_machine(const Level& level);

}  // namespace kiln::codegen::host
