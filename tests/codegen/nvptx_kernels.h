// What the NVPTX tests share: a kernel from text, compiled exactly as written (no passes before), and looks at its PTX.
#pragma once
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "kiln/ir/passes.h"
#include "kiln/ir/text.h"
#include "kiln/ir/verify.h"
#include "kiln/runtime/compiler.h"

namespace kiln::test {

inline Compiler& ptx_compiler() {
  const CodegenHandle& handle = code_generator();
  if (handle.compiler == nullptr) throw std::runtime_error(handle.error);
  return *handle.compiler;
}

// `lines`: what stands between the braces of `kernel "k" { ... }`.
inline ir::Kernel kernel_text(const std::string& lines, const std::string& name = "k") {
  return ir::parse_kernel("kir 1\nkernel \"" + name + "\" {\n" + lines + "\n}\n");
}

// The facts that a backend gets, without any pass: each access checked, or proven in an unchecked kernel.
inline ir::Prepared as_written(ir::Kernel kernel) {
  ir::verify_or_throw(kernel);
  ir::Prepared prepared;
  prepared.io = ir::analyze_visibility(kernel);
  prepared.requirement = ir::analyze_requirements(kernel);
  prepared.index_use = ir::analyze_index_use(kernel);
  prepared.shared = ir::layout_shared(kernel);
  for (ir::Op& op : kernel.ops) {
    if (!ir::is_access(op.code) || op.bounds != ir::Bounds::Undecided) continue;
    op.bounds = kernel.options.checked ? ir::Bounds::Checked : ir::Bounds::Proven;
    if (!kernel.options.checked) continue;
    op.site = static_cast<std::uint32_t>(prepared.sites.size());
    prepared.sites.push_back({.memory = kernel.mems[op.index].name,
                              .operation = std::string(ir::info(op.code).mnemonic),
                              .place = ir::to_string(kernel, op.loc),
                              .declared = {}});
  }
  prepared.kernel = std::move(kernel);
  return prepared;
}

inline CompileOptions ptx_options(const std::string& arch = "sm_80") { return {.target = TargetKind::Ptx, .arch = arch}; }

inline std::string ptx_of(const ir::Prepared& prepared, const CompileOptions& options = ptx_options()) {
  return ptx_compiler().compile(prepared, options).code;
}
inline std::string ptx_of(const std::string& lines, const CompileOptions& options = ptx_options()) {
  return ptx_of(as_written(kernel_text(lines)), options);
}

inline bool has(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }
inline int count(std::string_view text, std::string_view part) {
  int n = 0;
  for (std::size_t at = 0; (at = text.find(part, at)) != std::string_view::npos; at += part.size()) ++n;
  return n;
}

// The message of the CompileError that compiling throws; fails the test when it does not.
inline std::string compile_error(const ir::Prepared& prepared, const CompileOptions& options) {
  try {
    ptx_compiler().compile(prepared, options);
  } catch (const CompileError& e) { return e.what(); }
  FAIL_CHECK("compiled, but should have been refused");
  return {};
}

}  // namespace kiln::test
