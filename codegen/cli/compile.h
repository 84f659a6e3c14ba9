// The code generator as the commands use it: architectures by name, and a variant compiled for one. What is compiled here may come from
// somebody else and crash the compiler, so commands that take a SOURCE run in a child process with limits (supervise.h, limits.h): main()
// sees to it, and nothing here starts processes.
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
// What the name would be of: a CPU level, or else a GPU architecture; whether there is one is not asked.
TargetKind parse_kind(const std::string& name);
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

// Why the code for a target is as it is.
TargetReasons reasons(const ir::Prepared& kernel, const CompileOptions& options);

}  // namespace kiln::cli
