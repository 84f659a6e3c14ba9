// PTX text whose results are not settled by it.
#pragma once
#include <optional>
#include <string>

namespace kiln::test {

// The first instruction whose bits PTX leaves open: an addition, subtraction or multiplication of floats without a rounding, which ptxas
// may fuse with a neighbour, an approximation, or a flush of subnormals.
std::optional<std::string> inexact_float(const std::string& ptx);

}  // namespace kiln::test
