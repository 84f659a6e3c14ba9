// How many instructions a compiled kernel has.
#pragma once
#include <optional>
#include <string>

namespace kiln::bench {

// In the text: every instruction once, those of loops and rare branches too; no directives, labels or declarations.
std::optional<int> ptx_instructions(const std::string& ptx);
// In what ptxas makes of it for sm_80, subroutines included, the padding not; nothing where no ptxas is installed. Throws
// std::runtime_error with its words when it refuses.
std::optional<int> sass_instructions(const std::string& ptx);

}  // namespace kiln::bench
