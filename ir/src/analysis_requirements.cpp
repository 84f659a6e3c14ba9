// Which architecture a kernel needs, and because of which operation. Every operation of today's table runs on the oldest architecture
// accepted (sm_75); an operation that needs more gets a row in required_sm.
#include "kiln/ir/analysis.h"

namespace kiln::ir {
namespace {

constexpr unsigned kOldestSm = 75;

// The first architecture with the instructions that `op` compiles to.
unsigned required_sm(const Op&) { return kOldestSm; }

std::string describe(const Kernel& k, const Op& op) {
  std::string text(info(op.code).mnemonic);
  if (op.type != Type::Void) text += " " + std::string(name(op.type));
  return text + " at " + to_string(k, op.loc);
}

}  // namespace

Requirement analyze_requirements(const Kernel& kernel) {
  Requirement result;
  result.min_sm = kOldestSm;
  walk(kernel, 0, [&](OpId id) {
    const Op& op = kernel.op(id);
    const unsigned sm = required_sm(op);
    if (sm > result.min_sm) {
      result.min_sm = sm;
      result.reason = describe(kernel, op);
    }
  });
  return result;
}

}  // namespace kiln::ir
