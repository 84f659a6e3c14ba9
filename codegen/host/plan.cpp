#include "host/plan.h"

#include <algorithm>

namespace kiln::codegen::host {

using ir::Opcode;

namespace {

bool is_launch_value(Opcode c) {
  switch (c) {
    case Opcode::Const:
    case Opcode::Param:
    case Opcode::Extent:
    case Opcode::Size:
    case Opcode::Stride:
    case Opcode::BlockId:
    case Opcode::BlockDim:
    case Opcode::GridDim: return true;
    default: return false;
  }
}

class Planner {
 public:
  Planner(const ir::Kernel& kernel, const Structure& structure, const Shapes& shapes, Plan& out)
      : k_(kernel), s_(structure), shapes_(shapes), p_(out) {}

  void run() {
    block_region_.assign(k_.regions.size(), 0);
    mark_regions(0);
    find_block_values();
    cut(0);
    find_rematerialised();
    find_saved();
  }

 private:
  void mark_regions(ir::RegionId r) {
    block_region_[r] = 1;
    for (const ir::OpId id : k_.regions[r].ops) {
      if (!s_[id].block_level) continue;
      for (const ir::RegionId inner : k_.op(id).regions) mark_regions(inner);
    }
  }
  bool in_block_region(ir::OpId id) const { return block_region_[s_[id].region] != 0; }

  // --- values and slots of the whole block: greatest fixed point ----------------------------------------------------------
  void find_block_values() {
    std::fill(p_.block_slot.begin(), p_.block_slot.end(), 1);
    bool changed = true;
    while (changed) {
      changed = false;
      ir::walk(k_, 0, [&](ir::OpId id) { p_.block_value[id] = is_block_value(id); });
      for (std::uint32_t slot = 0; slot < k_.slots.size(); ++slot) {
        if (!p_.block_slot[slot]) continue;
        for (const ir::OpId use : s_.slot_uses[slot]) {
          const ir::Op& op = k_.op(use);
          if (op.code != Opcode::Set || (in_block_region(use) && p_.block_value[op.operands[0]])) continue;
          p_.block_slot[slot] = 0;
          changed = true;
        }
      }
    }
  }
  bool is_block_value(ir::OpId id) const {
    const ir::Op& op = k_.op(id);
    if (is_launch_value(op.code)) return true;
    if (!in_block_region(id)) return false;
    if (ir::is_block_barrier(op.code)) return op.type != ir::Type::Void;
    if (op.code == Opcode::For) return s_[id].block_level;  // its bounds are captured where warps compute them
    if (op.code == Opcode::Get) return p_.block_slot[op.index] != 0;
    if (!ir::is_pure(op.code) || op.operands.empty()) return false;
    return all_block(op);
  }
  bool all_block(const ir::Op& op) const {
    return std::all_of(op.operands.begin(), op.operands.end(), [&](ir::ValueId v) { return p_.block_value[v] != 0; });
  }

  // --- steps ------------------------------------------------------------------------------------------------------------------
  void cut(ir::RegionId r) {
    const auto& ops = k_.regions[r].ops;
    std::size_t begin = 0;
    const auto flush = [&](std::size_t end, std::size_t next) {
      if (end > begin) segment(r, begin, end);
      begin = next;
    };
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const ir::OpId id = ops[i];
      const ir::Op& op = k_.op(id);
      if (op.code == Opcode::Barrier) {
        flush(i, i + 1);
      } else if (ir::is_block_barrier(op.code)) {
        flush(i + 1, i + 1);
        p_.steps[r].push_back({Step::Kind::Scalar, 0, 0, id});
      } else if (s_[id].block_level || op.code == Opcode::Return || op.code == Opcode::Yield) {
        flush(i, i + 1);
        for (const ir::RegionId inner : op.regions) cut(inner);
        p_.steps[r].push_back({Step::Kind::Control, 0, 0, id});
      } else if (op.code == Opcode::Set && p_.block_slot[op.index]) {
        // Warp code before the set must still see the old value.
        if (reads_below(r, begin, i, op.index)) flush(i, i + 1);
        p_.steps[r].push_back({Step::Kind::Scalar, 0, 0, id});
      } else if (p_.block_value[id] && !is_launch_value(op.code)) {
        p_.steps[r].push_back({Step::Kind::Scalar, 0, 0, id});
      }
    }
    flush(ops.size(), ops.size());
  }

  bool reads_below(ir::RegionId r, std::size_t begin, std::size_t end, std::uint32_t slot) const {
    bool found = false;
    for (std::size_t i = begin; i < end; ++i) {
      for (const ir::RegionId inner : k_.op(k_.regions[r].ops[i]).regions) {
        ir::walk(k_, inner, [&](ir::OpId id) { found |= k_.op(id).code == Opcode::Get && k_.op(id).index == slot; });
      }
    }
    return found;
  }

  void segment(ir::RegionId r, std::size_t begin, std::size_t end) {
    const std::uint32_t number = ++p_.segments;
    p_.steps[r].push_back({Step::Kind::Segment, begin, end, ir::kNone, number});
    for (std::size_t i = begin; i < end; ++i) {
      const ir::OpId id = k_.regions[r].ops[i];
      p_.segment_of[id] = number;
      for (const ir::RegionId inner : k_.op(id).regions) {
        ir::walk(k_, inner, [&](ir::OpId below) { p_.segment_of[below] = number; });
      }
    }
  }

  // --- what crosses a cut ---------------------------------------------------------------------------------------------------------
  void find_rematerialised() {
    std::vector<unsigned> cost(k_.ops.size(), 0);
    constexpr unsigned kMost = 16;
    ir::walk(k_, 0, [&](ir::OpId id) {
      const ir::Op& op = k_.op(id);
      if (p_.block_value[id]) {
        p_.rematerialise[id] = is_launch_value(op.code);
        return;
      }
      cost[id] = kMost + 1;
      if (op.code == Opcode::ThreadId || op.code == Opcode::GlobalId || op.code == Opcode::LaneId || op.code == Opcode::WarpId) {
        cost[id] = 1;
      } else if (ir::is_pure(op.code) && op.code != Opcode::Div && op.code != Opcode::Rem && op.code != Opcode::Sqrt &&
                 op.code != Opcode::Fma) {
        cost[id] = 1;
        for (const ir::ValueId v : op.operands) cost[id] += cost[v];
      }
      p_.rematerialise[id] = cost[id] <= kMost;
    });
  }

  void find_saved() {
    ir::walk(k_, 0, [&](ir::OpId id) {
      const ir::Op& op = k_.op(id);
      for (const ir::ValueId v : op.operands) {
        if (s_[id].block_level && !ir::is_block_barrier(op.code)) {
          if (!p_.block_value[v]) capture(v);
        } else if (p_.segment_of[id] != 0 && !p_.block_value[id]) {
          need(v, p_.segment_of[id]);
        } else if (ir::is_block_barrier(op.code)) {
          need(v, p_.segment_of[id]);
        }
      }
      if (op.code == Opcode::Yield && in_block_region(id) && !p_.block_value[op.operands[0]]) capture(op.operands[0]);
    });
    for (std::uint32_t slot = 0; slot < k_.slots.size(); ++slot) {
      if (!p_.block_slot[slot]) p_.saved_slot[slot] = lives_on(s_.slot_uses[slot], shapes_.set_first[slot] != 0);
    }
    std::vector<std::vector<ir::OpId>> accesses(k_.mems.size());
    ir::walk(k_, 0, [&](ir::OpId id) {
      if (ir::is_access(k_.op(id).code)) accesses[k_.op(id).index].push_back(id);
    });
    for (std::uint32_t mem = 0; mem < k_.mems.size(); ++mem) {
      if (k_.mems[mem].space == ir::Space::Local) p_.saved_local[mem] = lives_on(accesses[mem], false);
    }
  }
  void capture(ir::ValueId v) { p_.captured[v] = 1; }

  void need(ir::ValueId v, std::uint32_t segment) {
    if (p_.block_value[v] || p_.segment_of[v] == segment) return;
    if (!p_.rematerialise[v]) {
      p_.saved[v] = 1;
      return;
    }
    for (const ir::ValueId operand : k_.op(v).operands) need(operand, segment);
  }

  // Storage that more than one segment uses, or one that runs again and may read what an earlier run left.
  bool lives_on(const std::vector<ir::OpId>& uses, bool set_first) const {
    for (const ir::OpId use : uses) {
      if (p_.segment_of[use] != p_.segment_of[uses[0]]) return true;
    }
    if (uses.empty() || set_first) return false;
    for (ir::OpId loop = s_[uses[0]].loop; loop != ir::kNone; loop = s_[loop].loop) {
      if (s_[loop].block_level) return true;
    }
    return false;
  }

  const ir::Kernel& k_;
  const Structure& s_;
  const Shapes& shapes_;
  Plan& p_;
  std::vector<char> block_region_;
};

}  // namespace

Plan::Plan(const ir::Kernel& kernel, const Structure& structure, const Shapes& shapes)
    : steps(kernel.regions.size()),
      block_value(kernel.ops.size(), 0),
      block_slot(kernel.slots.size(), 0),
      rematerialise(kernel.ops.size(), 0),
      saved(kernel.ops.size(), 0),
      captured(kernel.ops.size(), 0),
      saved_slot(kernel.slots.size(), 0),
      saved_local(kernel.mems.size(), 0),
      segment_of(kernel.ops.size(), 0) {
  Planner(kernel, structure, shapes, *this).run();
}

}  // namespace kiln::codegen::host
