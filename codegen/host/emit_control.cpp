// Control flow of a warp. A branch that no lane takes is jumped over; a loop runs until no lane is in it; lanes that left by break,
// continue or return are tracked in variables that LLVM turns into registers.
#include <llvm/IR/MDBuilder.h>

#include "host/emitter.h"

namespace kiln::codegen::host {

using ir::Opcode;
using llvm::Value;

namespace {

constexpr unsigned kMostVersions = 3;      // nesting of regions made twice, once for all lanes
constexpr std::uint32_t kMostTwice = 400;  // operations in a region that is made twice

}  // namespace

std::size_t Emitter::end_of(ir::RegionId region) const { return region == segment_region_ ? segment_end_ : k_.regions[region].ops.size(); }

std::uint32_t Emitter::size_from(ir::RegionId region, std::size_t begin) const {
  std::uint32_t n = 0;
  for (std::size_t i = begin; i < end_of(region); ++i) n += structure_[k_.regions[region].ops[i]].size;
  return n;
}

void Emitter::emit_ops(ir::RegionId region, std::size_t begin, Mask m) {
  const std::size_t end = end_of(region);
  for (std::size_t i = begin; i < end; ++i) {
    const ir::OpId id = k_.regions[region].ops[i];
    if (i + 1 < end && m.full() && is_early_return(id)) {
      // What follows is for the lanes that stay: often all of them, as a compare of two scalars shows.
      const ir::Op& op = k_.op(id);
      Value* condition = vector(op.operands[0]);
      emit_leave(k_.regions[op.regions[0]].ops[0], Mask{condition});
      emit_for_lanes(b_.CreateNot(condition), region, i + 1, true, certainly(op.operands[0], false));
      return;
    }
    emit_op(id, m);
    if (i + 1 == end) return;
    if (llvm::AllocaInst* left = lost_lanes(id)) {
      Value* now = b_.CreateAnd(lanes(m), b_.CreateLoad(left->getAllocatedType(), left));
      emit_for_lanes(now, region, i + 1, m.full());
      return;
    }
  }
}

void Emitter::emit_op(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  if (plan_ && !ir::is_block_barrier(op.code)) {
    if (plan_->block_value[id]) return;
    if (op.code == Opcode::Set && plan_->block_slot[op.index]) return;
  }
  switch (ir::info(op.code).form) {
    case ir::Form::Const: return;
    case ir::Form::Query:
      if (ir::info(op.code).effect == ir::Effect::Time) return define(id, splat(clock(op.code)), m);
      if (op.code == Opcode::ThreadId || op.code == Opcode::GlobalId || op.code == Opcode::LaneId || op.code == Opcode::WarpId)
        define(id, query(id), m);
      return;
    case ir::Form::Unary:
    case ir::Form::Binary:
    case ir::Form::Ternary:
    case ir::Form::IntegerPower:
    case ir::Form::Compare:
    case ir::Form::Select:
    case ir::Form::Convert:
      if (op.code == Opcode::BlockUniform) return emit_block_vote(id, m);
      return define(id, arithmetic(id), m);
    case ir::Form::SlotGet: return emit_get(id, m);
    case ir::Form::SlotSet: return emit_set(id, m);
    case ir::Form::Load: return emit_load(id, m);
    case ir::Form::Store: return emit_store(id, m);
    case ir::Form::Atomic:
    case ir::Form::AtomicCas: return emit_atomic(id, m);
    case ir::Form::Barrier: return;  // warp_sync: lanes run together
    case ir::Form::BlockVote: return emit_block_vote(id, m);
    case ir::Form::WarpVote: return emit_vote(id, m);
    case ir::Form::Shuffle: return emit_shuffle(id, m);
    case ir::Form::WarpCombine: return emit_combine(id, m);
    case ir::Form::If: return emit_if(id, m);
    case ir::Form::For: return emit_for(id, m);
    case ir::Form::While: return emit_while(id, m);
    case ir::Form::Switch: return emit_switch(id, m);
    case ir::Form::Leave: return emit_leave(id, m);
    case ir::Form::Yield:
      b_.CreateStore(yield_->getAllocatedType()->isVectorTy() ? vector(op.operands[0]) : scalar(op.operands[0]), yield_);
      return;
    case ir::Form::Check: return emit_check(id, m);
    case ir::Form::Text: return op.code == Opcode::Trap ? emit_trap(id, m) : emit_log(id, m);
    case ir::Form::Require: return;  // the host has checked it
  }
}

bool Emitter::is_direct(ir::OpId leave, ir::OpId up_to) const {
  for (ir::OpId around = structure_.around(leave); around != up_to; around = structure_.around(around)) {
    if (shapes_.divergent[around]) return false;
  }
  return true;
}

llvm::AllocaInst* Emitter::lost_lanes(ir::OpId id) {
  const OpFacts& facts = structure_[id];
  if (facts.escapes && !loops_.empty() && loops_.back().divergent) return loops_.back().running;
  if (!facts.returns) return nullptr;
  bool lost = false;
  const auto look = [&](ir::OpId below) { lost |= k_.op(below).code == Opcode::Return && !is_direct(below, ir::kNone); };
  for (const ir::RegionId r : k_.op(id).regions) ir::walk(k_, r, look);
  return lost ? alive_ : nullptr;
}

void Emitter::emit_for_lanes(Value* some, ir::RegionId region, std::size_t begin, bool may_be_full, Value* certainly_all,
                             Block* after_all) {
  Block *part = block("part"), *end = block("join");
  const bool twice = may_be_full && versions_ < kMostVersions && size_from(region, begin) <= kMostTwice;
  if (twice) {
    Block *all = block("all"), *not_all = block("not.all");
    Value* test = certainly_all ? certainly_all : b_.CreateICmpEQ(bits(some), b_.getInt32(~0u));
    b_.CreateCondBr(test, all, not_all, llvm::MDBuilder(c_).createLikelyBranchWeights());
    start(all);
    ++versions_;
    emit_ops(region, begin, Mask{});
    --versions_;
    branch_to(after_all ? after_all : end);
    start(not_all);
  }
  b_.CreateCondBr(b_.CreateICmpNE(bits(some), b_.getInt32(0)), part, end);
  start(part);
  emit_ops(region, begin, Mask{some});
  branch_to(end);
  start(end);
}

void Emitter::emit_if(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const ir::RegionId then_region = op.regions[0], else_region = op.regions[1];
  const bool has_then = !k_.regions[then_region].ops.empty(), has_else = !k_.regions[else_region].ops.empty();
  if (!shapes_.divergent[id]) {
    Block *then_block = block("then"), *end = block("endif"), *else_block = has_else ? block("else") : end;
    b_.CreateCondBr(scalar(op.operands[0]), then_block, else_block);
    start(then_block);
    emit_ops(then_region, 0, m);
    branch_to(end);
    if (has_else) {
      start(else_block);
      emit_ops(else_region, 0, m);
      branch_to(end);
    }
    start(end);
    return;
  }
  Value* condition = vector(op.operands[0]);
  Value* taken = m.full() ? condition : b_.CreateAnd(m.lanes, condition);
  Value* not_taken = has_else ? b_.CreateAnd(lanes(m), b_.CreateNot(condition)) : nullptr;
  Block* end = block("endif");
  Value* all = m.full() ? certainly(op.operands[0], true) : nullptr;
  if (has_then) emit_for_lanes(taken, then_region, 0, m.full(), all, end);
  if (has_else) emit_for_lanes(not_taken, else_region, 0, m.full(), m.full() ? certainly(op.operands[0], false) : nullptr);
  branch_to(end);
  start(end);
}

bool Emitter::is_early_return(ir::OpId id) const {
  const ir::Op& op = k_.op(id);
  if (op.code != Opcode::If || !shapes_.divergent[id] || !k_.regions[op.regions[1]].ops.empty()) return false;
  const auto& then_ops = k_.regions[op.regions[0]].ops;
  return then_ops.size() == 1 && k_.op(then_ops[0]).code == Opcode::Return;
}

// A scalar that is true only if `v`, a bool, is `wanted` in all 32 lanes (which are all active); null when there is no cheap one. Lanes
// that lie side by side are bounded by the first and the last of them. What a comparison before a barrier compared is often not there
// behind it, where only its result was asked for.
Value* Emitter::certainly(ir::ValueId v, bool wanted) {
  const ir::Op& op = k_.op(v);
  if (shapes_[v].uniform()) {
    if (!at_hand(v)) return nullptr;
    return wanted ? scalar(v) : b_.CreateNot(scalar(v));
  }
  Opcode code = op.code;
  if (code == Opcode::Not) return certainly(op.operands[0], !wanted);
  if (code == Opcode::And || code == Opcode::Or) {
    Value *x = certainly(op.operands[0], wanted), *y = certainly(op.operands[1], wanted);
    const bool both = (code == Opcode::And) == wanted;
    if (both) return x && y ? b_.CreateAnd(x, y) : nullptr;
    return x && y ? b_.CreateOr(x, y) : x ? x : y;
  }
  if (ir::info(code).form != ir::Form::Compare) return nullptr;
  const ir::ValueId left = op.operands[0], right = op.operands[1];
  const ir::Type t = k_.op(left).type;
  if (!ir::is_integer(t)) return nullptr;
  if (!wanted) {
    switch (code) {
      case Opcode::Lt: code = Opcode::Ge; break;
      case Opcode::Le: code = Opcode::Gt; break;
      case Opcode::Gt: code = Opcode::Le; break;
      case Opcode::Ge: code = Opcode::Lt; break;
      case Opcode::Eq: code = Opcode::Ne; break;
      default: code = Opcode::Eq;
    }
  }
  // The least and the greatest of the lanes, or null.
  const auto bound = [&](ir::ValueId x, bool greatest) -> Value* {
    const Shape& s = shapes_[x];
    if (!at_hand(x)) return nullptr;
    if (s.uniform()) return scalar(x);
    if (!s.affine() || !s.exact || s.column < 0 || s.row < 0) return nullptr;
    if (!greatest) return scalar(x);
    const std::uint64_t reach =
        static_cast<std::uint64_t>(s.column) * (geometry_.width - 1) + static_cast<std::uint64_t>(s.row) * (kLanes / geometry_.width - 1);
    return b_.CreateAdd(scalar(x), llvm::ConstantInt::get(scalar(x)->getType(), reach));
  };
  const auto test = [&](Opcode c, bool left_greatest, bool right_greatest) -> Value* {
    Value *x = bound(left, left_greatest), *y = bound(right, right_greatest);
    return x && y ? arith_.emit(c, ir::Type::Bool, t, {x, y}) : nullptr;
  };
  switch (code) {
    case Opcode::Lt:
    case Opcode::Le: return test(code, true, false);
    case Opcode::Gt:
    case Opcode::Ge: return test(code, false, true);
    case Opcode::Ne: {
      Value *below = test(Opcode::Lt, true, false), *above = test(Opcode::Gt, false, true);
      return below && above ? b_.CreateOr(below, above) : nullptr;
    }
    default: return nullptr;
  }
}

void Emitter::emit_switch(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const ir::ValueId selector = op.operands[0];
  const ir::Type type = k_.op(selector).type;
  const std::size_t n = op.cases.size();
  if (!shapes_.divergent[id]) {
    Block* end = block("endswitch");
    std::vector<Block*> target;
    for (std::size_t i = 0; i <= n; ++i) target.push_back(block("case"));
    llvm::SwitchInst* sw = b_.CreateSwitch(scalar(selector), target[n], static_cast<unsigned>(n));
    for (std::size_t i = 0; i < n; ++i) {
      sw->addCase(llvm::cast<llvm::ConstantInt>(constant(lane_type(c_, type), type, op.cases[i])), target[i]);
    }
    for (std::size_t i = 0; i <= n; ++i) {
      start(target[i]);
      emit_ops(op.regions[i], 0, m);
      branch_to(end);
    }
    start(end);
    return;
  }
  Value* v = vector(selector);
  Value* rest = lanes(m);
  for (std::size_t i = 0; i < n; ++i) {
    Value* equal = b_.CreateICmpEQ(v, constant(v->getType(), type, op.cases[i]));
    Value* taken = b_.CreateAnd(lanes(m), equal);
    rest = b_.CreateAnd(rest, b_.CreateNot(equal));
    if (!k_.regions[op.regions[i]].ops.empty()) emit_for_lanes(taken, op.regions[i], 0, false);
  }
  if (!k_.regions[op.regions[n]].ops.empty()) emit_for_lanes(rest, op.regions[n], 0, false);
}

// A loop that waits for another block must see that block's stores: nothing is kept in registers across its iterations.
void Emitter::compiler_fence(ir::OpId loop) {
  bool waits = false;
  for (const ir::RegionId r : k_.op(loop).regions) {
    ir::walk(k_, r, [&](ir::OpId id) {
      waits |= k_.op(id).code == Opcode::Load && atomic_[k_.op(id).index] && k_.mems[k_.op(id).index].space == ir::Space::Global;
    });
  }
  if (waits) b_.CreateFence(llvm::AtomicOrdering::SequentiallyConsistent, llvm::SyncScope::SingleThread);
}

Value* Emitter::for_begins(ir::OpId id, bool scalars) {
  const ir::Op& op = k_.op(id);
  const auto in = [&](unsigned i) { return scalars ? scalar(op.operands[i]) : vector(op.operands[i]); };
  return ir::is_signed(op.type) ? b_.CreateICmpSLT(in(0), in(1)) : b_.CreateICmpULT(in(0), in(1));
}

// i + step is still below hi, without computing i + step, which may wrap (ops.def).
Value* Emitter::for_goes_on(ir::OpId id, Value* i, bool scalars) {
  const ir::Op& op = k_.op(id);
  const auto in = [&](unsigned n) { return scalars ? scalar(op.operands[n]) : vector(op.operands[n]); };
  Value* one = llvm::ConstantInt::get(i->getType(), 1);
  Value* left = b_.CreateSub(b_.CreateSub(in(1), i), one);
  return b_.CreateICmpULT(b_.CreateSub(in(2), one), left);
}

// Returns below `region` that some lanes of a warp may take without the others.
llvm::AllocaInst* Emitter::returned_inside(ir::RegionId region) const {
  bool lost = false;
  ir::walk(k_, region, [&](ir::OpId below) { lost |= k_.op(below).code == Opcode::Return && !is_direct(below, ir::kNone); });
  return lost ? alive_ : nullptr;
}

void Emitter::emit_for(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const Shape& shape = shapes_[id];
  llvm::AllocaInst* i = variable(held_type(op.type, shape), "i");
  b_.CreateStore(shape.varying() ? vector(op.operands[0]) : scalar(op.operands[0]), i);
  Loop loop{id, static_cast<bool>(shapes_.divergent[id])};
  loop.exit = block("for.end");
  loop.next = block("for.next");
  loops_.push_back(loop);
  if (loop.divergent) {
    emit_divergent_for(id, m, i);
  } else {
    emit_uniform_for(id, m, i);
  }
  loops_.pop_back();
  start(loop.exit);
}

// All lanes make the same iterations (but for those that return on the way).
void Emitter::emit_uniform_for(ir::OpId id, Mask m, llvm::AllocaInst* i) {
  const ir::Op& op = k_.op(id);
  const Loop loop = loops_.back();
  llvm::AllocaInst* returned = returned_inside(op.regions[0]);
  const auto left = [&] { return b_.CreateAnd(lanes(m), b_.CreateLoad(returned->getAllocatedType(), returned)); };
  Block* head = block("for");
  b_.CreateCondBr(for_begins(id, true), head, loop.exit);
  start(head);
  Value* now = b_.CreateLoad(i->getAllocatedType(), i);
  define(id, now, m);
  compiler_fence(id);
  if (returned) {
    emit_for_lanes(left(), op.regions[0], 0, m.full());
  } else {
    emit_ops(op.regions[0], 0, m);
  }
  branch_to(loop.next);
  start(loop.next);
  Value* goes_on = for_goes_on(id, now, true);
  b_.CreateStore(b_.CreateAdd(now, scalar(op.operands[2])), i);
  if (returned) goes_on = b_.CreateAnd(goes_on, any(left()));
  b_.CreateCondBr(goes_on, head, loop.exit);
}

void Emitter::emit_divergent_for(ir::OpId id, Mask m, llvm::AllocaInst* i) {
  const ir::Op& op = k_.op(id);
  const Shape& shape = shapes_[id];
  const ir::RegionId body = op.regions[0];
  const bool scalars = shapes_[op.operands[0]].uniform() && shapes_[op.operands[1]].uniform() && shapes_[op.operands[2]].uniform();
  Loop& loop = loops_.back();
  llvm::AllocaInst *live = loop.live = variable(lanes_of(b_.getInt1Ty()), "live"),
                   *running = loop.running = variable(lanes_of(b_.getInt1Ty()), "running");
  Block *next = loop.next, *end = loop.exit;
  const auto load = [&](llvm::AllocaInst* v) { return b_.CreateLoad(v->getAllocatedType(), v); };
  const auto step = [&] { return shape.varying() ? vector(op.operands[2]) : scalar(op.operands[2]); };
  const auto held = [&](Value* v) { return scalars || shape.varying() ? v : spread(id, v); };
  Block* head = block("for");

  // While all lanes are in it, a loop whose lanes lie side by side asks for its last lane only, and needs no masks.
  const bool side_by_side = m.full() && shape.affine() && shape.exact && shapes_[op.operands[1]].uniform() && versions_ < kMostVersions &&
                            structure_[id].size <= kMostTwice;
  if (side_by_side) {
    const bool leaves = structure_[id].returns || !structure_.leaves[id].empty();
    const std::uint64_t reach = static_cast<std::uint64_t>(shape.column) * (geometry_.width - 1) +
                                static_cast<std::uint64_t>(shape.row) * (kLanes / geometry_.width - 1);
    Block *full = block("for.full"), *last_turn = block("for.not.full"), *begin = block("for.begin");
    Value* last_lane_index = b_.CreateAdd(scalar(op.operands[0]), llvm::ConstantInt::get(i->getAllocatedType(), reach));
    Value* hi = scalar(op.operands[1]);
    b_.CreateCondBr(ir::is_signed(op.type) ? b_.CreateICmpSLT(last_lane_index, hi) : b_.CreateICmpULT(last_lane_index, hi), full, begin,
                    llvm::MDBuilder(c_).createLikelyBranchWeights());
    start(full);
    Value* now = load(i);
    define(id, now, m);
    compiler_fence(id);
    b_.CreateStore(all_lanes(), live);
    b_.CreateStore(all_lanes(), running);
    ++versions_;
    emit_ops(body, 0, Mask{});
    --versions_;
    Value* one = llvm::ConstantInt::get(now->getType(), 1);
    Value* beyond = b_.CreateSub(b_.CreateSub(hi, b_.CreateAdd(now, llvm::ConstantInt::get(now->getType(), reach))), one);
    Value* all_go_on = b_.CreateICmpULT(b_.CreateSub(step(), one), beyond);
    if (leaves) all_go_on = b_.CreateAnd(all_go_on, b_.CreateICmpEQ(bits(load(live)), b_.getInt32(~0u)));
    b_.CreateStore(b_.CreateAdd(now, step()), i);
    b_.CreateCondBr(all_go_on, full, last_turn);
    start(last_turn);
    Value* rest = for_goes_on(id, held(now), scalars);
    if (leaves) rest = b_.CreateAnd(load(live), rest);
    b_.CreateStore(rest, live);
    b_.CreateCondBr(any(rest), head, end);
    start(begin);
  }

  Value* begins = for_begins(id, scalars);
  Value* first = scalars ? lanes(m) : b_.CreateAnd(lanes(m), begins);
  b_.CreateStore(first, live);
  b_.CreateCondBr(scalars ? begins : any(first), head, end);
  start(head);
  Value* now = load(i);
  define(id, now, m);
  compiler_fence(id);
  Value* in = load(live);
  b_.CreateStore(in, running);
  emit_for_lanes(in, body, 0, m.full() && !side_by_side);
  branch_to(next);
  start(next);
  Value* goes_on = for_goes_on(id, held(now), scalars);
  b_.CreateStore(b_.CreateAdd(now, step()), i);
  Value* still = load(live);
  if (!scalars) {
    still = b_.CreateAnd(still, goes_on);
    b_.CreateStore(still, live);
  }
  b_.CreateCondBr(scalars ? b_.CreateAnd(goes_on, any(still)) : any(still), head, end);
}

void Emitter::emit_while(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const ir::RegionId condition = op.regions[0], body = op.regions[1];
  const bool divergent = shapes_.divergent[id];
  llvm::Type* i1 = b_.getInt1Ty();
  Block *head = block("while"), *next = block("while.next"), *end = block("while.end");
  Loop loop{id, divergent};
  loop.exit = end;
  loop.next = next;
  llvm::AllocaInst* returned = returned_inside(condition) ? returned_inside(condition) : returned_inside(body);
  const auto left = [&](llvm::AllocaInst* var) { return b_.CreateLoad(var->getAllocatedType(), var); };
  llvm::AllocaInst* outer_yield = yield_;
  llvm::AllocaInst* yield = variable(divergent ? static_cast<llvm::Type*>(lanes_of(i1)) : i1, "condition");
  if (divergent) {
    loop.live = variable(lanes_of(i1), "live");
    loop.running = variable(lanes_of(i1), "running");
    b_.CreateStore(lanes(m), loop.live);
  }
  branch_to(head);
  start(head);
  compiler_fence(id);
  loops_.push_back(loop);
  b_.CreateStore(llvm::Constant::getNullValue(yield->getAllocatedType()), yield);
  yield_ = yield;
  if (divergent) {
    Value* live = left(loop.live);
    b_.CreateStore(live, loop.running);
    emit_ops(condition, 0, Mask{live});
    yield_ = outer_yield;
    Value* stay = b_.CreateAnd(left(loop.live), left(yield));
    b_.CreateStore(stay, loop.live);
    b_.CreateStore(stay, loop.running);
    emit_for_lanes(stay, body, 0, m.full());
    loops_.pop_back();
    branch_to(next);
    start(next);
    b_.CreateCondBr(any(left(loop.live)), head, end);
  } else {
    const auto now = [&] { return returned ? Mask{b_.CreateAnd(lanes(m), left(returned))} : m; };
    emit_ops(condition, 0, now());
    yield_ = outer_yield;
    Block* run = block("while.body");
    b_.CreateCondBr(left(yield), run, end);
    start(run);
    if (returned) {
      emit_for_lanes(now().lanes, body, 0, m.full());
    } else {
      emit_ops(body, 0, m);
    }
    loops_.pop_back();
    branch_to(next);
    start(next);
    if (returned) {
      b_.CreateCondBr(any(now().lanes), head, end);
    } else {
      branch_to(head);
    }
  }
  start(end);
}

void Emitter::drop(llvm::AllocaInst* from, Mask m) {
  Value* v = m.full() ? no_lanes() : b_.CreateAnd(b_.CreateLoad(from->getAllocatedType(), from), b_.CreateNot(m.lanes));
  b_.CreateStore(v, from);
}

// What follows a leave in its region is nothing, so code goes on in a block that nobody reaches, or with a mask that its user looks up
// again.
void Emitter::emit_leave(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  if (op.code == Opcode::Return) {
    drop(alive_, m);
    if (is_direct(id, ir::kNone)) {
      branch_to(body_end_);
      start(block("after.return"));
      return;
    }
    for (const Loop& loop : loops_) {
      if (!loop.divergent) continue;
      drop(loop.live, m);
      drop(loop.running, m);
    }
    return;
  }
  const Loop& loop = loops_.back();
  if (!loop.divergent) {
    branch_to(op.code == Opcode::Break ? loop.exit : loop.next);
    start(block("after.leave"));
    return;
  }
  if (op.code == Opcode::Break) drop(loop.live, m);
  drop(loop.running, m);
}

}  // namespace kiln::codegen::host
