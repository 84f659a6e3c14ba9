#include "host/structure.h"

namespace kiln::codegen::host {
namespace {

class Walker {
 public:
  Walker(const ir::Kernel& kernel, Structure& out) : k_(kernel), s_(out) {}

  void region(ir::RegionId r, ir::OpId owner, ir::OpId loop) {
    s_.parent[r] = owner;
    for (const ir::OpId id : k_.regions[r].ops) {
      const ir::Op& op = k_.op(id);
      OpFacts& f = s_.op[id];
      f.region = r;
      f.loop = loop;
      f.barrier = ir::is_block_barrier(op.code);
      f.returns = op.code == ir::Opcode::Return;
      f.escapes = op.code == ir::Opcode::Break || op.code == ir::Opcode::Continue;
      if (f.escapes && loop != ir::kNone) s_.leaves[loop].push_back(id);
      if (op.code == ir::Opcode::Get || op.code == ir::Opcode::Set) s_.slot_uses[op.index].push_back(id);
      for (const ir::RegionId inner : op.regions) {
        region(inner, id, is_loop(op.code) ? id : loop);
        for (const ir::OpId child : k_.regions[inner].ops) {
          f.size += s_.op[child].size;
          f.barrier |= s_.op[child].barrier;
          f.returns |= s_.op[child].returns;
          f.escapes |= s_.op[child].escapes && !is_loop(op.code);
        }
      }
      s_.has_barrier |= f.barrier;
      s_.has_return |= f.returns;
    }
  }

  // A second walk, when it is known which loops hold barriers.
  void levels(ir::RegionId r) {
    for (const ir::OpId id : k_.regions[r].ops) {
      const ir::Op& op = k_.op(id);
      OpFacts& f = s_.op[id];
      f.block_level = f.barrier || (f.escapes && f.loop != ir::kNone && s_.op[f.loop].barrier);
      for (const ir::RegionId inner : op.regions) levels(inner);
    }
  }

 private:
  const ir::Kernel& k_;
  Structure& s_;
};

}  // namespace

Structure::Structure(const ir::Kernel& kernel)
    : op(kernel.ops.size()), parent(kernel.regions.size(), ir::kNone), leaves(kernel.ops.size()), slot_uses(kernel.slots.size()) {
  Walker walker(kernel, *this);
  walker.region(0, ir::kNone, ir::kNone);
  walker.levels(0);
}

}  // namespace kiln::codegen::host
