// The CPU device: always there. Programs are host objects; blocks run on a pool of threads.
#pragma once
#include <memory>
#include <string>

#include "src/device.h"

namespace kiln::rt {

struct CpuOptions {
  unsigned workers = 0;    // 0: one a hardware thread
  std::string arch;        // empty: this processor's level. A level above it gives programs that cannot run.
  unsigned number = 0;     // N of "cpu:N", for errors; 0: "cpu"
  bool any_block = false;  // code for every shape of blocks, where a kernel does not declare its own
  std::string name = {};   // in errors; empty: of the number
};
Result<std::unique_ptr<Device>> make_cpu_device(const CpuOptions& options = {});

}  // namespace kiln::rt
