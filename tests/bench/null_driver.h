// The CUDA driver that does nothing, for what Kiln does around the driver's calls.
#pragma once
#include <string>

#include "kiln/runtime/client.h"

namespace kiln::bench {

// A process has one driver: this sees to it that it is that one, before any other was opened.
struct NullDriver {
  NullDriver();
  std::string file, why;  // the second: why it cannot be used; else empty
  Client client() const;  // of its one device. Precondition: why is empty
};

}  // namespace kiln::bench
