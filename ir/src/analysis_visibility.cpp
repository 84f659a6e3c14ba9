// What a kernel does to each of its buffers, and what it asks of the launch.
#include <algorithm>

#include "kiln/ir/analysis.h"

namespace kiln::ir {

std::vector<Visibility> analyze_visibility(const Kernel& kernel) {
  std::vector<std::uint8_t> seen(kernel.mems.size(), 0);  // bit 0: read, bit 1: written
  walk(kernel, 0, [&](OpId id) {
    const Op& op = kernel.op(id);
    if (!is_access(op.code) || op.index >= seen.size()) return;
    const Effect e = info(op.code).effect;
    if (e != Effect::Write) seen[op.index] |= 1;
    if (e != Effect::Read) seen[op.index] |= 2;
  });
  std::vector<Visibility> result;
  for (const Param& p : kernel.params) {
    if (p.is_buffer) result.push_back(static_cast<Visibility>(seen[p.mem]));
  }
  return result;
}
static_assert(static_cast<int>(Visibility::ReadOnly) == 1 && static_cast<int>(Visibility::WriteOnly) == 2 &&
              static_cast<int>(Visibility::ReadWrite) == 3);

std::vector<bool> atomic_mems(const Kernel& kernel) {
  std::vector<bool> result(kernel.mems.size(), false);
  walk(kernel, 0, [&](OpId id) {
    const Op& op = kernel.op(id);
    if (is_atomic(op.code) && op.index < result.size()) result[op.index] = true;
  });
  return result;
}

IndexUse analyze_index_use(const Kernel& kernel) {
  IndexUse use;
  use.extent32.resize(kernel.mems.size());
  use.size32.resize(kernel.mems.size());
  walk(kernel, 0, [&](OpId id) {
    const Op& op = kernel.op(id);
    if (bit_width(op.type) > 32) return;
    switch (op.code) {
      case Opcode::GlobalId:
        if (op.attr < 3) use.global_id32[op.attr] = true;
        break;
      case Opcode::Extent:
        if (op.index < use.extent32.size() && op.attr < kMaxRank) use.extent32[op.index][op.attr] = true;
        break;
      case Opcode::Size:
        if (op.index < use.size32.size()) use.size32[op.index] = true;
        break;
      default: break;
    }
  });
  return use;
}

}  // namespace kiln::ir
