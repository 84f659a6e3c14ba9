// The two lowerings behind the Compiler interface. Private to codegen/.
#pragma once
#include <string>

#include "kiln/runtime/compiler.h"

namespace kiln::codegen {

// nvptx/: PTX text. host/: an ELF relocatable object. Both throw CompileError and are thread-safe; LLVM's fatal errors and diagnostics
// never leave them as anything else (codegen/llvm_guard.h).
CompiledCode compile_ptx(const ir::Prepared& kernel, const CompileOptions& options);
std::string ptx_llvm_ir(const ir::Prepared& kernel, const CompileOptions& options);
TargetReasons ptx_reasons(const ir::Prepared& kernel, const CompileOptions& options);
const std::vector<std::string>& ptx_architectures();

CompiledCode compile_host(const ir::Prepared& kernel, const CompileOptions& options);
std::string host_llvm_ir(const ir::Prepared& kernel, const CompileOptions& options);
TargetReasons host_reasons();  // every kernel has code for every level

}  // namespace kiln::codegen
