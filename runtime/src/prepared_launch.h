// A launch of which everything is checked: what launching once and launching again have in common.
#pragma once
#include <optional>
#include <vector>

#include "kiln/runtime/client.h"
#include "src/programs.h"

namespace kiln::rt {

struct CheckedLaunch {
  const LaunchPlan* plan = nullptr;
  const Program* program = nullptr;  // null: nothing to do
  LaunchConfig config;               // as it will be launched
  bool nothing_to_do = false;        // a grid axis of 0
  bool grid_known = false;           // of a dynamic grid: the host has read it
};

Error no_kernel();  // of a launch that names none

// Behind PreparedLaunch. `request` names the args and the grid that are kept here.
struct PreparedState {
  PreparedState(const Stream& on, const LaunchRequest& given);
  PreparedState(const PreparedState&) = delete;

  Stream stream;
  std::vector<LaunchArg> args, former;  // the second: room for rebind
  std::optional<Binding> grid;
  LaunchRequest request;
  CheckedLaunch checked;
};

}  // namespace kiln::rt
