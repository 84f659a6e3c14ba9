// Makes sizes, scalars and shapes of a launch fit the kernel's require()s, by turning what is false into what is true, one at a time.
#pragma once
#include <map>
#include <set>
#include <string>
#include <vector>

#include "engine.h"
#include "kiln/ir/kernel.h"
#include "random_values.h"

namespace kiln::cli {

struct FixedParts {
  bool grid = false, block = false;
  std::vector<bool> arguments;
};

class RequirementSolver {
 public:
  // Changes `launch` in place: extents, scalars, grid and block, never contents.
  RequirementSolver(const ir::Kernel& kernel, OneLaunch& launch, FixedParts fixed, Random& random);
  bool solve();                                        // false: not within so many steps
  const std::string& unmet() const { return unmet_; }  // "require(x.size() == n) at file.cpp:12"

 private:
  using Known = std::map<ir::ValueId, std::uint64_t>;
  std::uint64_t value(ir::ValueId id) const;
  std::uint64_t value(ir::ValueId id, Known& known) const;
  // Each tries to change the launch so that the value becomes what is wanted, and says whether it changed anything.
  bool make_true(ir::ValueId condition, bool wanted);
  bool assign(ir::ValueId id, std::uint64_t wanted, int depth);
  bool assign_size(std::size_t param, std::uint64_t wanted);
  void shake(ir::ValueId id);  // changes some leaf below
  void leaves(ir::ValueId id, std::set<ir::ValueId>& seen, std::vector<ir::ValueId>& found) const;
  std::size_t param_of(const ir::Op& op) const;

  const ir::Kernel& kernel_;
  OneLaunch& launch_;
  FixedParts fixed_;
  Random& random_;
  std::string unmet_;
};

}  // namespace kiln::cli
