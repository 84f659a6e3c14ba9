#include "kiln/ir/verify.h"

#include <string>

#include "verify_impl.h"

namespace kiln::ir {
namespace verifier {

std::string quoted(std::string_view s) { return "'" + std::string(s) + "'"; }

void Findings::at(Loc loc, std::string message) {
  const std::string place = to_string(k_, loc);
  out_.push_back({k_.name, place == "?" ? "" : place, std::move(message)});
}

void Findings::at_kernel(std::string message) { at(k_.loc, std::move(message)); }

void Findings::at_op(OpId id, std::string message) {
  std::string place = id < k_.ops.size() ? to_string(k_, k_.op(id).loc) : "?";
  if (place == "?") place = "operation " + std::to_string(id);
  out_.push_back({k_.name, place, std::move(message)});
}

}  // namespace verifier

Diagnostics verify(const Kernel& kernel, Stage stage) {
  verifier::Findings findings(kernel);
  verifier::check_declarations(kernel, findings);
  verifier::check_structure(kernel, findings);
  if (findings.empty()) verifier::check_operations(kernel, stage, findings);
  if (findings.empty()) verifier::check_barriers(kernel, findings);
  return findings.take();
}

void verify_or_throw(const Kernel& kernel, Stage stage) {
  Diagnostics found = verify(kernel, stage);
  if (!found.empty()) throw IrError(std::move(found));
}

}  // namespace kiln::ir
