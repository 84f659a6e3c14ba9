#include "io_sets.h"

namespace kiln::rt {

namespace {

ir::Visibility visibility_of(ir::Access access) {
  switch (access) {
    case ir::Access::In: return ir::Visibility::ReadOnly;
    case ir::Access::Out: return ir::Visibility::WriteOnly;
    case ir::Access::InOut: break;
  }
  return ir::Visibility::ReadWrite;
}

}  // namespace

void io_sets(std::span<const BufferUse> buffers, std::span<const ir::Visibility> proven, IoSets& out) {
  out.clear();
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const BufferUse& buffer = buffers[i];
    if (buffer.where.empty()) continue;
    const ir::Visibility io = i < proven.size() ? proven[i] : buffer.declared ? visibility_of(*buffer.declared) : ir::Visibility::ReadWrite;
    if (ir::reads(io)) out.reads.push_back(buffer.where);
    if (!ir::writes(io)) continue;
    out.writes.push_back(buffer.where);
    if (buffer.declared == ir::Access::Out && !buffer.strided) out.covers.push_back(buffer.where);
  }
}

}  // namespace kiln::rt
