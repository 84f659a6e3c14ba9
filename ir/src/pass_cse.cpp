// Merges pure operations that compute the same from the same operands, where the earlier one is visible: in the same region or one around
// it.
#include <algorithm>
#include <unordered_map>
#include <vector>

#include "kiln/ir/passes.h"

namespace kiln::ir {
namespace {

bool commutes(Opcode c) {
  switch (c) {
    case Opcode::Add:
    case Opcode::Mul:
    case Opcode::MulHi:
    case Opcode::And:
    case Opcode::Or:
    case Opcode::Xor:
    case Opcode::Min:
    case Opcode::Max:
    case Opcode::MinNan:
    case Opcode::MaxNan:
    case Opcode::Eq:
    case Opcode::Ne: return true;
    default: return false;
  }
}

class Cse {
 public:
  explicit Cse(Kernel& kernel) : k_(kernel), replaced_(kernel.ops.size()) {
    for (OpId i = 0; i < replaced_.size(); ++i) replaced_[i] = i;
    std::size_t size = 64;
    while (size < 2 * kernel.ops.size()) size *= 2;
    heads_.assign(size, kNone);
    next_.assign(kernel.ops.size(), kNone);
  }

  void run(RegionId region) {
    std::vector<std::size_t> opened;  // buckets that this region pushed to, undone at its end
    std::vector<OpId>& ops = k_.regions[region].ops;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ops.size(); ++i) {
      const OpId id = ops[i];
      Op& op = k_.ops[id];
      for (ValueId& v : op.operands) v = replaced_[v];
      if (is_pure(op.code)) {
        const std::size_t bucket = hash(op) & (heads_.size() - 1);
        OpId same = heads_[bucket];
        while (same != kNone && !equal(k_.ops[same], op)) same = next_[same];
        if (same != kNone) {
          replaced_[id] = same;
          continue;
        }
        next_[id] = heads_[bucket];
        heads_[bucket] = id;
        opened.push_back(bucket);
      }
      for (const RegionId r : op.regions) run(r);
      ops[kept++] = id;
    }
    ops.resize(kept);
    for (std::size_t i = opened.size(); i-- > 0;) heads_[opened[i]] = next_[heads_[opened[i]]];
  }

 private:
  static std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
    h = (h ^ v) * 0x9e3779b97f4a7c15u;
    return h ^ (h >> 29);
  }
  static std::uint64_t hash(const Op& op) {
    std::uint64_t h = static_cast<std::uint64_t>(op.code) | static_cast<std::uint64_t>(op.type) << 8 | std::uint64_t{op.attr} << 16 |
                      std::uint64_t{op.index} << 32;
    h = mix(h, op.imm);
    if (commutes(op.code)) return mix(h, mix(0, op.operands[0]) + mix(0, op.operands[1]));
    for (const ValueId v : op.operands) h = mix(h, v);
    return h;
  }
  // Operand types need no comparison: equal operands have equal types.
  static bool equal(const Op& a, const Op& b) {
    if (a.code != b.code || a.type != b.type || a.attr != b.attr || a.index != b.index || a.imm != b.imm) return false;
    if (a.operands == b.operands) return true;
    return commutes(a.code) && a.operands[0] == b.operands[1] && a.operands[1] == b.operands[0];
  }

  Kernel& k_;
  std::vector<ValueId> replaced_;
  std::vector<OpId> heads_, next_;  // a chained hash table over the operations visible now
};

}  // namespace

void eliminate_common(Kernel& kernel) { Cse(kernel).run(0); }

}  // namespace kiln::ir
