// NVIDIA's PTX assembler as a judge of our PTX, where one is installed. A tool of the tests only: the product never needs it.
#pragma once
#include <string>

namespace kiln::test {

// The assembler: KILN_PTXAS, else on PATH, else in the toolkit's usual place. Empty where there is none.
const std::string& ptxas_path();
// For doctest::skip, so that what could not be judged is counted as skipped and not as passed.
inline bool no_ptxas() { return ptxas_path().empty(); }
// Why tests were skipped; empty when there is a ptxas.
std::string no_ptxas_reason();

struct Assembled {
  bool ok = false;
  std::string messages;  // of ptxas -v
  int registers = -1;    // of the entry, as ptxas -v says
  bool spills = false;
};
// Assembles `ptx` for `arch` ("sm_80"). Precondition: !no_ptxas().
Assembled assemble_ptx(const std::string& ptx, const std::string& arch);

}  // namespace kiln::test
