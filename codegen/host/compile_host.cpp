#include "backend.h"

namespace kiln::codegen {

CompiledCode compile_host(const ir::Prepared& kernel, const CompileOptions&) {
  throw CompileError("kernel '" + kernel.kernel.name + "': the host backend is not built yet", true);
}
std::string host_llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) { return compile_host(kernel, options).code; }

}  // namespace kiln::codegen
