#include "kiln/ir/param_layout.h"

#include <algorithm>

namespace kiln::ir {

ParamLayout param_layout(const Kernel& kernel, bool checked) {
  ParamLayout layout;
  const auto add = [&](ParamField::Kind kind, std::uint32_t param, unsigned dimension, Type type) {
    ParamField f{.kind = kind, .param = param, .dimension = static_cast<std::uint8_t>(dimension), .type = type};
    f.size = std::max(1u, byte_size(type));
    f.offset = (layout.bytes + f.size - 1) / f.size * f.size;
    layout.bytes = f.offset + f.size;
    layout.fields.push_back(f);
  };
  for (std::uint32_t p = 0; p < kernel.params.size(); ++p) {
    const Param& param = kernel.params[p];
    if (!param.is_buffer) {
      add(ParamField::Kind::Scalar, p, 0, param.type);
      continue;
    }
    const Mem& mem = kernel.mems[param.mem];
    add(ParamField::Kind::Pointer, p, 0, Type::U64);
    for (unsigned d = 0; d < mem.rank; ++d) add(ParamField::Kind::Extent, p, d, Type::U64);
    for (unsigned d = 0; mem.strided && d < mem.rank; ++d) add(ParamField::Kind::Stride, p, d, Type::U64);
  }
  const auto has = [&](Opcode code) { return std::ranges::any_of(kernel.ops, [&](const Op& op) { return op.code == code; }); };
  if (checked || has(Opcode::Trap)) add(ParamField::Kind::Fault, kNone, 0, Type::U64);
  if (has(Opcode::LogText)) add(ParamField::Kind::Log, kNone, 0, Type::U64);
  layout.bytes = (layout.bytes + 7) / 8 * 8;
  return layout;
}

std::uint32_t log_stride(const Kernel& kernel) {
  std::size_t most = 0;
  for (const Op& op : kernel.ops)
    if (op.code == Opcode::LogText) most = std::max(most, op.operands.size());
  return static_cast<std::uint32_t>(sizeof(LogRecord) + most * sizeof(std::uint64_t));
}

}  // namespace kiln::ir
