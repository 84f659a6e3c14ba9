// What libkiln_codegen exports: its identity and one Compiler that sends each kernel to the lowering of its target.
#include <llvm/Config/llvm-config.h>

#include <cstring>

#include "kiln_build_id.h"

#define KILN_EXPORT extern "C" __attribute__((visibility("default")))

namespace kiln::codegen {
namespace {

class Backends final : public Compiler {
 public:
  CompiledCode compile(const ir::Prepared& kernel, const CompileOptions& options) override {
    return options.target == TargetKind::Ptx ? compile_ptx(kernel, options) : compile_host(kernel, options);
  }
  std::string llvm_ir(const ir::Prepared& kernel, const CompileOptions& options) override {
    return options.target == TargetKind::Ptx ? ptx_llvm_ir(kernel, options) : host_llvm_ir(kernel, options);
  }
  TargetReasons reasons(const ir::Prepared& kernel, const CompileOptions& options) override {
    return options.target == TargetKind::Ptx ? ptx_reasons(kernel, options) : host_reasons();
  }
  const std::vector<std::string>& ptx_architectures() const override { return codegen::ptx_architectures(); }
  std::string llvm_version() const override { return LLVM_VERSION_STRING; }
};

CodegenIdentity make_identity() {
  CodegenIdentity identity;
  static_assert(sizeof(KILN_BUILD_ID) <= sizeof(identity.build_id) && sizeof(LLVM_VERSION_STRING) <= sizeof(identity.llvm_version));
  std::memcpy(identity.build_id, KILN_BUILD_ID, sizeof(KILN_BUILD_ID));
  std::memcpy(identity.llvm_version, LLVM_VERSION_STRING, sizeof(LLVM_VERSION_STRING));
  return identity;
}

}  // namespace
}  // namespace kiln::codegen

KILN_EXPORT const kiln::CodegenIdentity* kiln_codegen_identity() {
  static const kiln::CodegenIdentity identity = kiln::codegen::make_identity();
  return &identity;
}

KILN_EXPORT kiln::Compiler* kiln_codegen_create() { return new kiln::codegen::Backends; }
