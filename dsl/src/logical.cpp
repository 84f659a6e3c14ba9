// Short circuit: `a && b` records what only b computes under a, when it loads. The overloaded operator sees both sides recorded already, so
// the operations of the right side are found again at the end of the region and moved.
//
// Which operations are the right side's? Those after where the right side began. That place is known when the left side is the value of
// an expression (it was evaluated just before) or when the condition stands in If or While (they note where it began). Else only the end of
// the region is known: operations without effects are moved when the right side's value needs them, and moved back when something uses them
// later, which shows that they were named before; an effect there counts as an earlier statement only when it stands further up in the same
// function.
#include <algorithm>
#include <cstring>

#include "kiln/dsl/value.h"

namespace kiln::dsl {
namespace {

bool has_effect(const ir::Op& op) {
  switch (ir::info(op.code).effect) {
    case ir::Effect::None:
    case ir::Effect::Read: return false;
    case ir::Effect::Slot: return op.code == ir::Opcode::Set;
    default: return true;
  }
}

// In the same function, and further up.
bool stands_before(const Where& a, const Where& b) {
  return a.line() != 0 && std::pair(a.line(), a.column()) < std::pair(b.line(), b.column()) &&
         std::strcmp(a.function_name(), b.function_name()) == 0 && std::strcmp(a.file_name(), b.file_name()) == 0;
}

}  // namespace

ir::ValueId Recorder::logical(bool is_and, ir::ValueId a, bool exact_left, ir::ValueId b, const Where* where) {
  const ir::Loc loc = where ? (at(*where), builder_.loc) : kernel_.ops[b].loc;
  settle();
  const ir::RegionId here = builder_.region();
  std::vector<ir::OpId>& list = kernel_.regions[here].ops;

  // Where the right side may begin.
  std::size_t start = 0;
  bool known = false;
  if (const auto left = std::find(list.begin(), list.end(), a); left != list.end()) {
    const auto after = static_cast<std::size_t>(left - list.begin()) + 1;
    if (exact_left || after < list.size()) start = after;
    known = exact_left;
  }
  if (!marks.empty() && marks.back().region == here) {
    start = std::max(start, std::min(marks.back().position, list.size()));
    known = true;
  }

  // What b needs, of this region from `start` on; an `if` of an inner && comes with the slot it sets.
  std::vector<char> needed(kernel_.ops.size(), 0);
  std::vector<ir::OpId> work{b};
  const auto need = [&](ir::OpId id) {
    if (!needed[id]) {
      needed[id] = 1;
      work.push_back(id);
    }
  };
  needed[b] = 1;
  while (!work.empty()) {
    const ir::OpId id = work.back();
    work.pop_back();
    const ir::Op& op = kernel_.ops[id];
    for (ir::ValueId operand : op.operands) need(operand);
    for (ir::RegionId region : op.regions) ir::walk(kernel_, region, [&](ir::OpId inner) { need(inner); });
    if (op.code == ir::Opcode::Get) {
      if (const auto set_by = logical_slots_.find(op.index); set_by != logical_slots_.end()) need(set_by->second);
    }
  }

  // From the end backwards: users come before what they use. What stays keeps what it uses.
  std::vector<char> kept(kernel_.ops.size(), 0);
  std::vector<char> moves(list.size(), 0);
  bool worth = false;
  for (std::size_t i = list.size(); i-- > start;) {
    const ir::OpId id = list[i];
    const ir::Op& op = kernel_.ops[id];
    const bool inner_logical = logical_ifs_.contains(id);
    if (has_effect(op) && !inner_logical) {
      const bool earlier = !known && where && stands_before(origin_of_[id], *where);
      if (!earlier) {
        const std::string what(ir::info(op.code).mnemonic);
        const std::string side = is_and ? "&&" : "||";
        fail(known ? "the right side of " + side + " does '" + what + "', an effect that cannot happen under the left side only; use If"
                   : "the right side of " + side + " may do the '" + what + "' at " + ir::to_string(kernel_, op.loc) +
                         "; write the condition in If (...) or compute it before",
             known ? op.loc : loc);
      }
      break;
    }
    if (needed[id] && !kept[id]) {
      moves[i] = 1;
      worth |= op.code == ir::Opcode::Load || inner_logical;
    } else {
      for (ir::ValueId operand : op.operands) kept[operand] = 1;
      for (ir::RegionId region : op.regions) {
        ir::walk(kernel_, region, [&](ir::OpId inner) {
          for (ir::ValueId operand : kernel_.ops[inner].operands) kept[operand] = 1;
        });
      }
      if (op.code == ir::Opcode::Get) {
        if (const auto set_by = logical_slots_.find(op.index); set_by != logical_slots_.end()) kept[set_by->second] = 1;
      }
    }
  }
  builder_.loc = loc;
  if (!worth) return builder_.binary(is_and ? ir::Opcode::And : ir::Opcode::Or, a, b);

  std::vector<ir::OpId> stay, under;
  for (std::size_t i = 0; i < list.size(); ++i) (moves[i] ? under : stay).push_back(list[i]);
  list = std::move(stay);
  const ir::ValueId condition = is_and ? a : builder_.unary(ir::Opcode::Not, a);
  const std::uint32_t slot = builder_.slot(is_and ? "and" : "or", ir::Type::Bool);
  const ir::OpId branch = builder_.if_(condition);
  settle();
  open_.resize(kernel_.regions.size(), 0);
  const ir::RegionId then = kernel_.ops[branch].regions[0];
  for (ir::OpId id : under) {
    region_of_[id] = then;
    moved_[id] = branch;
    if (const auto inner = logical_ifs_.find(id); inner != logical_ifs_.end()) inner->second = then;
  }
  kernel_.regions[then].ops = std::move(under);
  builder_.set_region(then);
  builder_.set(slot, b);
  region_of_.push_back(then);
  origin_of_.push_back(origin_);
  builder_.set_region(here);
  logical_ifs_[branch] = here;
  logical_slots_[slot] = branch;
  // Where the left side decides, the slot is masked: it needs no value of its own there, and guards by the left side stay visible.
  return builder_.binary(is_and ? ir::Opcode::And : ir::Opcode::Or, a, builder_.get(slot));
}

// Moves a value, and what it needs of the same region, from under `branch` to before it.
void Recorder::hoist(ir::ValueId id, ir::OpId branch) {
  const ir::RegionId from = kernel_.ops[branch].regions[0], to = logical_ifs_.at(branch);
  const auto within = [&](ir::OpId x) {
    const auto found = moved_.find(x);
    return found != moved_.end() && found->second == branch;
  };
  std::vector<char> goes(kernel_.ops.size(), 0);
  std::vector<ir::OpId> work{id};
  goes[id] = 1;
  const auto need = [&](ir::OpId x) {
    if (!goes[x] && within(x)) {
      goes[x] = 1;
      work.push_back(x);
    }
  };
  while (!work.empty()) {
    const ir::Op& op = kernel_.ops[work.back()];
    work.pop_back();
    for (ir::ValueId operand : op.operands) need(operand);
    for (ir::RegionId region : op.regions) {
      ir::walk(kernel_, region, [&](ir::OpId inner) {
        for (ir::ValueId operand : kernel_.ops[inner].operands) need(operand);
      });
    }
    if (op.code == ir::Opcode::Get) {
      if (const auto set_by = logical_slots_.find(op.index); set_by != logical_slots_.end()) need(set_by->second);
    }
  }
  std::vector<ir::OpId> stay, out;
  for (ir::OpId x : kernel_.regions[from].ops) (goes[x] ? out : stay).push_back(x);
  kernel_.regions[from].ops = std::move(stay);
  auto& outer = kernel_.regions[to].ops;
  outer.insert(std::find(outer.begin(), outer.end(), branch), out.begin(), out.end());
  const auto next = moved_.find(branch);
  for (ir::OpId x : out) {
    region_of_[x] = to;
    if (next == moved_.end()) moved_.erase(x);
    else moved_[x] = next->second;
    if (const auto inner = logical_ifs_.find(x); inner != logical_ifs_.end()) inner->second = to;
  }
}

// --- the operators' left sides ---------------------------------------------------------------------------------------------

Handle logical_temporary(bool is_and, Handle a, const Operand& b) {
  Recorder& r = Recorder::current(b.where);
  return r.handle(r.logical(is_and, r.use(a, b.where), true, b.id, &b.where));
}
Handle logical_named(bool is_and, Handle a, const Operand& b) {
  Recorder& r = Recorder::current(b.where);
  return r.handle(r.logical(is_and, r.use(a, b.where), false, b.id, &b.where));
}
// Read after the right side was recorded: the right side has no effects, so the value is the same.
Handle logical_slot(bool is_and, Handle slot, const Operand& b) {
  Recorder& r = Recorder::current(b.where);
  return r.handle(r.logical(is_and, get_slot(slot, b.where).id, false, b.id, &b.where));
}
Handle logical_element(bool is_and, const Element& a, const Operand& b) {
  Recorder& r = Recorder::current(b.where);
  return r.handle(r.logical(is_and, load(a, b.where).id, false, b.id, &b.where));
}
// The host knows the left side. The right side was recorded either way: where it does not count, it must be without effects.
Handle logical_host(bool is_and, bool a, Handle b) {
  const Where here = last_where();
  Recorder& r = Recorder::current(here);
  r.use(b, here);
  if (a == is_and) return b;
  const ir::ValueId left = r.here().constant(ir::Type::Bool, a ? 1 : 0);
  return r.handle(r.logical(is_and, left, false, b.id, nullptr));
}

Handle logical_host(bool is_and, const Operand& a, bool b) {
  Recorder& r = Recorder::current(a.where);
  return r.handle(b == is_and ? a.id : r.here().constant(ir::Type::Bool, b ? 1 : 0));
}
Where last_where() {
  const Where here = Where::current();
  return Recorder::current(here).last();
}

}  // namespace kiln::dsl
