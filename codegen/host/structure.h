// Facts about the nesting of a kernel that every part of the host lowering asks for. Computed once; plain data.
#pragma once
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::codegen::host {

struct OpFacts {
  ir::RegionId region = ir::kNone;  // that holds the operation; kNone: not reachable
  ir::OpId loop = ir::kNone;        // innermost loop around it
  std::uint32_t size = 1;           // operations in it, itself included
  bool barrier = false;             // it is or contains a barrier of the block
  bool returns = false;             // it is or contains a return
  bool escapes = false;             // it is or contains a break or continue of a loop around it
  bool block_level = false;         // it contains a barrier, or leaves a loop that does: it steers the whole block
};

struct Structure {
  explicit Structure(const ir::Kernel& kernel);

  std::vector<OpFacts> op;                       // per op
  std::vector<ir::OpId> parent;                  // per region: the operation that owns it; kNone for the body
  std::vector<std::vector<ir::OpId>> leaves;     // per op: the breaks and continues of that loop
  std::vector<std::vector<ir::OpId>> slot_uses;  // per slot: gets and sets in program order
  bool has_barrier = false, has_return = false;

  const OpFacts& operator[](ir::OpId id) const { return op[id]; }
  // The operation around `id`, or kNone.
  ir::OpId around(ir::OpId id) const { return parent[op[id].region]; }
};

inline bool is_loop(ir::Opcode c) { return c == ir::Opcode::For || c == ir::Opcode::While; }
inline bool is_leave(ir::Opcode c) { return c == ir::Opcode::Break || c == ir::Opcode::Continue || c == ir::Opcode::Return; }

}  // namespace kiln::codegen::host
