// The parts of the verifier share one list of findings. Each part relies on what the parts before it found good.
#pragma once
#include <string>
#include <vector>

#include "kiln/ir/verify.h"

namespace kiln::ir::verifier {

class Findings {
 public:
  explicit Findings(const Kernel& kernel) : k_(kernel) {}
  // At the kernel's own place, at a memory's, at an operation's (its source line, else its number in program order).
  void at_kernel(std::string message);
  void at(Loc loc, std::string message);
  void at_op(OpId id, std::string message);

  bool empty() const { return out_.empty(); }
  Diagnostics take() { return std::move(out_); }

 private:
  const Kernel& k_;
  Diagnostics out_;
};

// Files, parameters, memories, slots, block size, in_place.
void check_declarations(const Kernel& k, Findings& findings);
// Ids in range and a tree of regions, each region and operation named once. Nothing below may run when this finds something.
void check_structure(const Kernel& k, Findings& findings);
// Each operation against the op table and the declarations; visibility of values; terminators; requires.
void check_operations(const Kernel& k, Stage stage, Findings& findings);
// Barriers stand where all threads of the block that have not returned come together. Needs everything above to be good.
void check_barriers(const Kernel& k, Findings& findings);

std::string quoted(std::string_view s);  // 's'

}  // namespace kiln::ir::verifier
