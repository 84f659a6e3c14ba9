// What a launch reads, writes and overwrites whole: R, W and C.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "claims.h"
#include "kiln/ir/analysis.h"
#include "kiln/ir/kernel.h"

namespace kiln::rt {

// Reuse one for many launches (clear() keeps the capacity): then it allocates nothing.
struct IoSets {
  std::vector<MemoryRange> reads;   // R: must be trustworthy, or the launch is skipped
  std::vector<MemoryRange> writes;  // W: claimed when the launch fails
  std::vector<MemoryRange> covers;  // C, a part of W: overwritten whole, so that success ends older claims
  void clear() {
    reads.clear();
    writes.clear();
    covers.clear();
  }
};

struct BufferUse {
  MemoryRange where;
  std::optional<ir::Access> declared;  // by the signature; none: not declared
  bool strided = false;
};

// The sets of a launch. Buffer i is what proven[i] says where `proven` reaches that far; else what its declaration says; else read and
// written. `proven` is empty where there is no compiled kernel. C: the buffers declared Out that are written and not strided. Empty ranges
// are left out. `out` is cleared.
void io_sets(std::span<const BufferUse> buffers, std::span<const ir::Visibility> proven, IoSets& out);

}  // namespace kiln::rt
