// One launch on what executes without a device: the interpreter's launch, and the same launch as PTX on the simulated driver's engine.
// Private to everywhere.cpp.
#pragma once
#include <string>
#include <vector>

#include "conformance/everywhere.h"
#include "interp/interp.h"

namespace kiln::test {

// The arguments on copies of their memories. With `off`, every memory begins one element late.
class CopiedLaunch {
 public:
  CopiedLaunch(const LaunchConfig& config, const std::vector<Arg>& args, bool off);
  CopiedLaunch(const CopiedLaunch&) = delete;
  CopiedLaunch& operator=(const CopiedLaunch&) = delete;

  const interp::Launch& launch() const { return launch_; }
  // What happened, with the memories as they are now; those of a launch with a fault are claimed, as on a device.
  void finish(const interp::Outcome& run, const ir::Prepared& prepared, Outcome& out);

 private:
  const std::vector<Arg>& args_;
  std::vector<std::vector<std::uint8_t>> memory_;
  std::vector<std::size_t> before_;  // bytes in front of each memory
  interp::Launch launch_;
};

// Compiles for `arch` and executes. `seed` is the order in which the threads run.
Outcome run_as_ptx(const std::string& arch, const Variant& variant, const LaunchConfig& config, const std::vector<Arg>& args,
                   ir::PrepareOptions::Mode mode, bool off, std::uint64_t seed);

}  // namespace kiln::test
