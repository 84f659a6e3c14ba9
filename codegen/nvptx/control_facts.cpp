#include "control_facts.h"

namespace kiln::codegen::nvptx {

using ir::Opcode;

bool ControlFacts::any(const std::vector<bool>& fact, const ir::Op& op) const {
  for (const ir::RegionId r : op.regions) {
    if (fact[r]) return true;
  }
  return false;
}

bool ControlFacts::op_needs_lanes(const ir::Kernel& k, ir::OpId id) const {
  const ir::Op& op = k.ops[id];
  if (op.code == Opcode::BlockUniform) return uniformity.value[op.operands[0]] > ir::Level::Block;
  return ir::is_warp_op(op.code) || any(needs_lanes, op);
}

namespace {

struct Analysis {
  const ir::Kernel& k;
  ControlFacts& facts;
  // Whether the innermost loop around the region being visited has a Break or Continue that not all lanes of a warp take.
  bool* splits = nullptr;

  bool split(ir::RegionId r) const { return facts.uniformity.region[r] == ir::Level::Thread; }

  void visit(ir::RegionId r) {
    for (std::size_t i = 0; i < k.regions[r].ops.size(); ++i) {
      const ir::OpId id = k.regions[r].ops[i];
      const ir::Op& op = k.ops[id];
      if (op.code == Opcode::Return && split(r)) facts.returns_some[r] = true;
      if (op.code == Opcode::Break || op.code == Opcode::Continue) {
        facts.leaves[r] = true;
        if (splits != nullptr && split(r)) *splits = true;
      }
      const bool loop = op.code == Opcode::For || op.code == Opcode::While;
      bool inner = false;
      bool* const outer = splits;
      if (loop) splits = &inner;
      for (const ir::RegionId child : op.regions) {
        visit(child);
        if (facts.returns_some[child]) facts.returns_some[r] = true;
        if (!loop && facts.leaves[child]) facts.leaves[r] = true;
      }
      splits = outer;
      if (facts.op_needs_lanes(k, id)) {
        facts.needs_lanes[r] = true;
        facts.last_need[r] = i + 1;
      }
      facts.loop_splits[id] = loop && inner && facts.any(facts.needs_lanes, op);
    }
  }
};

}  // namespace

ControlFacts analyze_control(const ir::Kernel& kernel) {
  ControlFacts facts;
  facts.uniformity = ir::analyze_uniformity(kernel);
  for (auto* per_region : {&facts.needs_lanes, &facts.returns_some, &facts.leaves}) per_region->resize(kernel.regions.size());
  facts.last_need.resize(kernel.regions.size());
  facts.loop_splits.resize(kernel.ops.size());
  Analysis{kernel, facts}.visit(0);
  return facts;
}

}  // namespace kiln::codegen::nvptx
