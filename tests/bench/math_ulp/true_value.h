// The error of one result by MPFR in 400 bits, where the build found MPFR: the judge of the worst arguments that libm pointed out.
#pragma once
#include <optional>

#include "kiln/ir/ops.h"

namespace kiln::bench {

// In units in the last place of the type. y: the second argument where there is one. Nothing where MPFR is missing.
std::optional<double> exact_error(ir::Opcode op, ir::Type type, double x, double y, double got);

}  // namespace kiln::bench
