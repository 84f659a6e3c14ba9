// Why a kernel's code for an architecture is as it is, and what it takes: `kiln emit --explain`.
#pragma once
#include <optional>

#include "command.h"
#include "kiln/runtime/compiler.h"
#include "ptxas.h"

namespace kiln::cli {

// One kernel for one architecture. `assembled`: what ptxas said, where it was asked.
Json explanation(const ir::Prepared& kernel, const CompileOptions& options, const CompiledCode& code, const TargetReasons& reasons,
                 const std::optional<Assembled>& assembled);

// The same for people, some lines.
std::string explanation_text(const Json& explanation);

}  // namespace kiln::cli
