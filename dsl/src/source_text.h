// The source of a condition again, from the IR: what a refused launch and an assumption that does not hold show.
#pragma once
#include <string>

#include "kiln/ir/kernel.h"

namespace kiln::dsl {

std::string source_text(const ir::Kernel& kernel, ir::ValueId condition);

}  // namespace kiln::dsl
