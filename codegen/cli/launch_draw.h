// Launches with sizes and values that nobody gave: within the kernel's declared block and its require()s.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "engine.h"
#include "kiln/ir/passes.h"
#include "random_values.h"

namespace kiln::cli {

// What is fixed; the rest is drawn.
struct GivenParts {
  std::optional<std::array<std::uint32_t, 3>> grid, block;
  std::optional<std::uint32_t> shared_bytes;
  std::vector<std::optional<Argument>> arguments;  // one a parameter, or none at all
};

class LaunchDraw {
 public:
  // Both are kept by reference.
  LaunchDraw(const ir::Prepared& kernel, const GivenParts& given);
  // A launch that the kernel's requirements hold for, the same for the same seed; larger for a larger `size` (1 to about 10). Nothing when
  // none was found; then `unmet` says which requirement stayed false.
  std::optional<OneLaunch> draw(std::uint64_t seed, unsigned size);
  const std::string& unmet() const { return unmet_; }

 private:
  // Values of a parameter that decide how often something runs, or which element is taken, are drawn small.
  struct Param {
    bool small = false;
  };
  class Attempt;
  friend class Attempt;
  void find_roles();

  const ir::Prepared& kernel_;
  const GivenParts& given_;
  std::vector<Param> params_;
  bool uses_axis_[3] = {true, false, false};
  std::string unmet_;
};

}  // namespace kiln::cli
