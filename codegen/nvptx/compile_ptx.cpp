#include "backend.h"

namespace kiln::codegen {

CompiledCode compile_ptx(const ir::Prepared& kernel, const CompileOptions&) {
  throw CompileError("kernel '" + kernel.kernel.name + "': the NVPTX backend is not built yet", true);
}
std::string ptx_llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) { return compile_ptx(kernel, options).code; }
const std::vector<std::string>& ptx_architectures() {
  static const std::vector<std::string> list{"sm_75"};
  return list;
}

}  // namespace kiln::codegen
