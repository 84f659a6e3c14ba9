// a*b+c -> fma, on the IR as recorded, so that the author's text alone decides what is fused: an add or sub of f32 or f64 whose left (else
// right) operand, through at most one neg, is a mul of the same region with exactly one use.
// Before that, under fast_math, x/y of f32 -> x * (1/y), which may be fused like any product. Not later, so that nothing is folded with the
// other meaning.
#include <vector>

#include "kiln/ir/expr.h"
#include "kiln/ir/passes.h"
#include "pass_expand.h"

namespace kiln::ir {
namespace {

class Contraction {
 public:
  explicit Contraction(Kernel& kernel) : k_(kernel), uses_(kernel.ops.size(), 0), region_(kernel.ops.size(), kNone) { count(0); }

  void run(RegionId region) {
    std::vector<OpId> out;
    const std::vector<OpId> in = k_.regions[region].ops;
    out.reserve(in.size());
    for (const OpId id : in) {
      fuse(id, region, out);
      out.push_back(id);
      for (const RegionId r : std::vector<RegionId>(k_.ops[id].regions)) run(r);
    }
    k_.regions[region].ops = std::move(out);
  }

 private:
  // Uses as recorded, before anything is fused: one fusion never changes the decision about another.
  void count(RegionId region) {
    for (const OpId id : k_.regions[region].ops) {
      region_[id] = region;
      for (const ValueId v : k_.ops[id].operands) ++uses_[v];
      for (const RegionId r : k_.ops[id].regions) count(r);
    }
  }

  struct Product {
    ValueId a, b;
    bool negated;
    bool found = false;
  };
  Product product(ValueId v, RegionId region) const {
    bool negated = false;
    if (k_.ops[v].code == Opcode::Neg) {
      negated = true;
      v = k_.ops[v].operands[0];
    }
    const Op& op = k_.ops[v];
    if (op.code != Opcode::Mul || region_[v] != region || uses_[v] != 1) return {};
    return {op.operands[0], op.operands[1], negated, true};
  }

  ValueId negate(ValueId v, const Op& like, std::vector<OpId>& out) {
    Op neg{.code = Opcode::Neg, .type = like.type, .loc = like.loc, .operands = {v}};
    k_.ops.push_back(std::move(neg));
    out.push_back(static_cast<OpId>(k_.ops.size() - 1));
    return out.back();
  }

  void fuse(OpId id, RegionId region, std::vector<OpId>& out) {
    const Op op = k_.ops[id];
    if ((op.code != Opcode::Add && op.code != Opcode::Sub) || (op.type != Type::F32 && op.type != Type::F64)) return;
    const bool sub = op.code == Opcode::Sub;
    Product p = product(op.operands[0], region);
    ValueId addend = op.operands[1];
    bool negate_addend = sub;
    if (!p.found) {
      p = product(op.operands[1], region);
      if (!p.found) return;
      addend = op.operands[0];
      negate_addend = false;
      p.negated ^= sub;
    }
    if (p.negated) p.a = negate(p.a, op, out);
    if (negate_addend) addend = negate(addend, op, out);
    Op& fused = k_.ops[id];
    fused.code = Opcode::Fma;
    fused.operands = {p.a, p.b, addend};
  }

  Kernel& k_;
  std::vector<std::uint32_t> uses_;
  std::vector<RegionId> region_;
};

void multiply_by_reciprocals(Kernel& kernel) {
  constexpr std::uint64_t kOne = 0x3f800000;
  const auto wanted = [&](const Op& op) {
    if (op.code != Opcode::Div || op.type != Type::F32) return false;
    const Op& dividend = kernel.op(op.operands[0]);
    return dividend.code != Opcode::Const || dividend.imm != kOne;  // 1/y is what it is
  };
  const auto expand = [](Builder& b, const Op& op) {
    const Expr x(b, op.operands[0]), y(b, op.operands[1]);
    const Expr reciprocal = x.like(1) / y;
    return (x * reciprocal).id();
  };
  Expansion(kernel, wanted, expand).run();
}

}  // namespace

void contract(Kernel& kernel) {
  if (kernel.options.fast_math) multiply_by_reciprocals(kernel);
  if (kernel.options.contraction) Contraction(kernel).run(0);
}

}  // namespace kiln::ir
