// The code generator as the commands use it: architectures by name, and a variant compiled for one.
#pragma once
#include <array>
#include <string>
#include <vector>

#include "command.h"
#include "kiln/runtime/compiler.h"
#include "kiln/runtime/variant.h"

namespace kiln::cli {

// The process's code generator. Throws Failed with every path tried when there is none.
Compiler& compiler();

const std::vector<std::string>& host_levels();  // ascending
std::string host_level();                       // the best of them this CPU has

struct Arch {
  std::string name;
  TargetKind kind = TargetKind::Ptx;
};
// Throws a usage error that lists what exists.
Arch parse_arch(const std::string& name);

// The variant after the device-independent passes. Throws Failed with its errors.
const ir::Prepared& prepared(const Variant& variant, Mode mode);

// `block`: {0,0,0} when not given. A host object needs one: the given, else the declared. Throws Failed when it is missing or contradicts
// the kernel.
CompileOptions compile_options(const ir::Prepared& kernel, const Arch& arch, const std::array<std::uint32_t, 3>& block);
// Throw Failed, with the architecture in the text.
CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options);
std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options);

// ptxas of an installed CUDA toolkit; empty when there is none (Kiln itself never needs it).
std::string find_ptxas();
// The cubin of a PTX text. Throws Failed when there is no ptxas or it refuses.
std::string assemble(const std::string& ptx, const std::string& arch);

}  // namespace kiln::cli
