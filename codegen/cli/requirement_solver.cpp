#include "requirement_solver.h"

#include <algorithm>

#include "kiln/ir/eval.h"

namespace kiln::cli {
namespace {

using ir::Opcode;

constexpr int kSteps = 200, kDepth = 40;
constexpr std::uint64_t kLongest = std::uint64_t{1} << 20;  // of one extent

bool is_leaf(Opcode c) {
  switch (c) {
    case Opcode::Param:
    case Opcode::Extent:
    case Opcode::Size:
    case Opcode::BlockDim:
    case Opcode::GridDim: return true;
    default: return false;
  }
}

}  // namespace

RequirementSolver::RequirementSolver(const ir::Kernel& kernel, OneLaunch& launch, FixedParts fixed, Random& random)
    : kernel_(kernel), launch_(launch), fixed_(std::move(fixed)), random_(random) {}

std::size_t RequirementSolver::param_of(const ir::Op& op) const {
  if (op.code == Opcode::Param) return op.index;
  for (std::size_t p = 0; p < kernel_.params.size(); ++p)
    if (kernel_.params[p].is_buffer && kernel_.params[p].mem == op.index) return p;
  return kernel_.params.size();
}

std::uint64_t RequirementSolver::value(ir::ValueId id) const {
  Known known;
  return value(id, known);
}

// As the runtime evaluates it at a launch.
std::uint64_t RequirementSolver::value(ir::ValueId id, Known& known) const {
  if (const auto found = known.find(id); found != known.end()) return found->second;
  const ir::Op& op = kernel_.op(id);
  const std::uint64_t mask = ir::value_mask(op.type);
  const std::size_t p = is_leaf(op.code) || op.code == Opcode::Stride ? param_of(op) : 0;
  switch (op.code) {
    case Opcode::Const: return op.imm;
    case Opcode::BlockDim: return launch_.block[op.attr];
    case Opcode::GridDim: return launch_.grid[op.attr];
    case Opcode::Param: return launch_.arguments.at(p).bits & mask;
    case Opcode::Extent:
      if (p >= launch_.arguments.size()) return 0;
      return launch_.arguments[p].extents.at(op.attr) & mask;
    case Opcode::Size:
    case Opcode::Stride: {
      if (p >= launch_.arguments.size()) return 0;
      const auto& extents = launch_.arguments[p].extents;
      std::uint64_t n = 1;
      for (std::size_t d = op.code == Opcode::Size ? 0 : op.attr + 1u; d < extents.size(); ++d) n *= extents[d];
      return n & mask;
    }
    default: break;
  }
  std::vector<std::uint64_t> operands;
  for (const ir::ValueId v : op.operands) operands.push_back(value(v, known));
  if (operands.empty()) return 0;
  const ir::Type type = kernel_.op(op.operands[op.code == Opcode::Select ? 1 : 0]).type;
  return known[id] = ir::evaluate(op.code, op.type, type, operands).value_or(0);
}

bool RequirementSolver::solve() {
  for (int step = 0; step < kSteps; ++step) {
    const ir::Op* wrong = nullptr;
    for (const ir::OpId id : kernel_.regions[0].ops) {
      const ir::Op& op = kernel_.op(id);
      if (op.code != Opcode::Require || value(op.operands[0]) != 0) continue;
      if (wrong == nullptr || random_.chance(30)) wrong = &op;
    }
    if (wrong == nullptr) return true;
    const std::string place = ir::to_string(kernel_, wrong->loc);
    unmet_ =
        "require(" + (wrong->imm < kernel_.texts.size() ? kernel_.texts[wrong->imm] : "...") + ")" + (place == "?" ? "" : " at " + place);
    if (random_.chance(10) || !make_true(wrong->operands[0], true)) shake(wrong->operands[0]);
  }
  return false;
}

bool RequirementSolver::make_true(ir::ValueId id, bool wanted) {
  const ir::Op& op = kernel_.op(id);
  if ((value(id) != 0) == wanted) return false;
  switch (op.code) {
    case Opcode::Not: return make_true(op.operands[0], !wanted);
    case Opcode::And:
    case Opcode::Or: {
      const bool all = (op.code == Opcode::And) == wanted;  // both sides have to become so, or one
      const std::size_t first = random_.below(2);
      const bool changed = make_true(op.operands[first], wanted);
      if (changed && !all) return true;
      return make_true(op.operands[1 - first], wanted) || changed;
    }
    default: break;
  }
  if (op.operands.size() != 2) return false;
  Opcode relation = op.code;
  if (!wanted) {
    switch (relation) {
      case Opcode::Eq: relation = Opcode::Ne; break;
      case Opcode::Ne: relation = Opcode::Eq; break;
      case Opcode::Lt: relation = Opcode::Ge; break;
      case Opcode::Le: relation = Opcode::Gt; break;
      case Opcode::Gt: relation = Opcode::Le; break;
      case Opcode::Ge: relation = Opcode::Lt; break;
      default: return false;
    }
  }
  if (ir::is_real(kernel_.op(op.operands[0]).type)) return false;  // left to chance
  const std::size_t first = random_.below(2);
  for (const std::size_t side : {first, 1 - first}) {
    const std::uint64_t other = value(op.operands[1 - side]);
    std::uint64_t target = other;
    const bool larger = (relation == Opcode::Gt) == (side == 0);
    if (relation == Opcode::Lt || relation == Opcode::Gt) {
      if (!larger && other == 0) continue;
      target = larger ? other + 1 : other - 1;
    } else if (relation == Opcode::Ne) {
      target = other + 1 + random_.below(3);
    } else if (relation != Opcode::Eq && relation != Opcode::Le && relation != Opcode::Ge) {
      return false;
    }
    if (assign(op.operands[side], target, 0)) return true;
  }
  return false;
}

bool RequirementSolver::assign_size(std::size_t param, std::uint64_t wanted) {
  std::vector<std::uint64_t>& extents = launch_.arguments[param].extents;
  std::uint64_t others = 1;
  for (std::size_t d = 0; d + 1 < extents.size(); ++d) others *= extents[d];
  if (others == 0 || wanted % others != 0) {
    for (std::size_t d = 0; d + 1 < extents.size(); ++d) extents[d] = 1;
    others = 1;
  }
  extents.back() = wanted / others;
  return true;
}

bool RequirementSolver::assign(ir::ValueId id, std::uint64_t wanted, int depth) {
  const ir::Op& op = kernel_.op(id);
  if (depth > kDepth || ir::is_real(op.type)) return false;
  if (value(id) == wanted) return false;
  const bool is_sized = op.code == Opcode::Extent || op.code == Opcode::Size;
  if (is_leaf(op.code)) {
    const bool of_launch = op.code == Opcode::BlockDim || op.code == Opcode::GridDim;
    const std::size_t p = of_launch ? 0 : param_of(op);
    if (of_launch) {
      const bool block = op.code == Opcode::BlockDim;
      if (block ? fixed_.block : fixed_.grid) return false;
      if (wanted == 0 || wanted > (block ? 1024u : 4096u)) return false;
      (block ? launch_.block : launch_.grid)[op.attr] = static_cast<std::uint32_t>(wanted);
      return true;
    }
    if (p >= launch_.arguments.size() || fixed_.arguments.at(p)) return false;
    if (is_sized && wanted > kLongest) return false;
    if (op.code == Opcode::Size) return assign_size(p, wanted);
    if (is_sized) launch_.arguments[p].extents.at(op.attr) = wanted;
    else launch_.arguments[p].bits = wanted & ir::value_mask(op.type);
    return true;
  }
  if (op.code == Opcode::Cast) return assign(op.operands[0], wanted, depth + 1);
  if (op.operands.size() != 2) return false;
  const std::size_t first = random_.below(2);
  for (const std::size_t side : {first, 1 - first}) {
    const std::uint64_t own = value(op.operands[side]), other = value(op.operands[1 - side]);
    std::uint64_t target = 0;
    switch (op.code) {
      case Opcode::Add: target = wanted - other; break;
      case Opcode::Sub: target = side == 0 ? wanted + other : other - wanted; break;
      case Opcode::Mul:
        if (other == 0 || wanted % other != 0) continue;
        target = wanted / other;
        break;
      case Opcode::Div:
        if (side == 1) continue;
        target = wanted * other + (other == 0 ? 0 : random_.below(2) * (other - 1));
        break;
      case Opcode::Rem:
        if (side == 1 || other == 0 || wanted >= other) continue;
        target = own - own % other + wanted + (own < other && random_.chance(50) ? other : 0);
        break;
      case Opcode::And:  // x & (2^n - 1), as a remainder of a power of two is written after folding
        if (side == 1 || (other & (other + 1)) != 0 || wanted > other) continue;
        target = (own & ~other) + wanted + (own <= other && random_.chance(50) ? other + 1 : 0);
        break;
      case Opcode::Shl:
        if (side == 1 || other > 31 || wanted % (std::uint64_t{1} << other) != 0) continue;
        target = wanted >> other;
        break;
      case Opcode::Shr:
        if (side == 1 || other > 31) continue;
        target = wanted << other;
        break;
      case Opcode::Min:
      case Opcode::Max: target = wanted; break;
      default: return false;
    }
    if (assign(op.operands[side], target & ir::value_mask(op.type), depth + 1)) return true;
  }
  return false;
}

void RequirementSolver::leaves(ir::ValueId id, std::set<ir::ValueId>& seen, std::vector<ir::ValueId>& found) const {
  if (!seen.insert(id).second) return;
  const ir::Op& op = kernel_.op(id);
  if (is_leaf(op.code)) found.push_back(id);
  for (const ir::ValueId v : op.operands) leaves(v, seen, found);
}

void RequirementSolver::shake(ir::ValueId id) {
  std::vector<ir::ValueId> found;
  std::set<ir::ValueId> seen;
  leaves(id, seen, found);
  if (found.empty()) return;
  const ir::ValueId leaf = random_.pick(found);
  const ir::Op& op = kernel_.op(leaf);
  if (op.code == Opcode::Param && ir::is_real(op.type) && !fixed_.arguments.at(op.index))
    launch_.arguments[op.index].bits = limited_value(random_, op.type, 16);
  else assign(leaf, 1 + random_.below(random_.chance(50) ? 16 : 300), 0);
}

}  // namespace kiln::cli
