// What a launch asks for and what a device can give.
#pragma once
#include <array>
#include <cstdint>

#include "simcuda/driver_objects.h"

namespace kiln::simcuda {

struct LaunchShape {
  std::array<std::uint32_t, 3> grid{1, 1, 1}, block{1, 1, 1}, cluster{1, 1, 1};
  std::uint32_t dynamic_shared = 0;
  bool has_cluster = false;
  bool cooperative = false;
  std::uint64_t threads() const { return std::uint64_t{block[0]} * block[1] * block[2]; }
  std::uint64_t blocks() const { return std::uint64_t{grid[0]} * grid[1] * grid[2]; }  // fits for checked grids
};

// A launch's configuration with its attributes and with the cluster that the function itself asks for.
CUresult read_shape(const CUlaunchConfig& config, const Function& function, LaunchShape& shape);
// All that the driver checks of a launch but its parameters.
CUresult check_launch(const Function& function, const LaunchShape& shape);
CUresult check_cluster(const Function& function, const LaunchShape& shape);

unsigned registers(const Function& function);         // a thread
std::uint64_t max_threads(const Function& function);  // a block, by registers and .maxntid
unsigned max_cluster(const Function& function);       // blocks of a cluster
std::uint64_t resident_blocks(const Function& function, std::uint64_t threads, std::uint64_t dynamic_shared);  // on a multiprocessor
std::uint64_t capacity(const Function& function, const LaunchShape& shape);  // blocks on the device at once

}  // namespace kiln::simcuda
