// Structured control flow as blocks, and who is still there: the mask of active lanes where warp operations need it.
#include "lowering.h"

namespace kiln::codegen::nvptx {

using ir::Opcode;
using llvm::BasicBlock;
using llvm::Value;

namespace {

enum Why : std::uint32_t { kStays = 0, kBreaks = 1, kContinues = 2 };

// Such a region needs no block of its own.
bool is_empty(const ir::Kernel& k, ir::RegionId r) { return k.regions[r].ops.empty(); }

}  // namespace

BasicBlock* Lowering::block(const char* name) { return BasicBlock::Create(c_, name, f_); }
bool Lowering::terminated() const { return b_.GetInsertBlock()->getTerminator() != nullptr; }
void Lowering::jump(BasicBlock* to) {
  if (!terminated()) b_.CreateBr(to);
}

void Lowering::emit_region(ir::RegionId region) {
  const std::vector<ir::OpId>& ops = k_.regions[region].ops;
  for (std::size_t i = 0; i < ops.size(); ++i) emit_op(ops[i], mask_.lanes != nullptr && facts_.last_need[region] > i + 1);
}

// --- branches -------------------------------------------------------------------------------------------------------

// Must those that come together behind `op` ask who is left? Only if a warp operation follows in the region, and the question cannot be
// left to active(): lanes on their way out of the loop take part in it.
bool Lowering::splits_here(const ir::Op& op, bool lanes_needed_later) const {
  return lanes_needed_later && loop_ != nullptr && loop_->leaving != nullptr && facts_.any(facts_.leaves, op);
}

// Emits the regions of an if or switch into `blocks` under `masks` and continues in `join`.
void Lowering::emit_branches(const ir::Op& op, const std::vector<BasicBlock*>& blocks, const std::vector<Value*>& masks, BasicBlock* join,
                             bool asks) {
  const Mask before = mask_;
  const llvm::DebugLoc line = lines_.at(op.loc);
  if (asks) loop_->joins.push_back(join);
  for (std::size_t i = 0; i < op.regions.size(); ++i) {
    if (blocks[i] == join) continue;
    b_.SetInsertPoint(blocks[i]);
    mask_ = {masks[i], false};
    emit_region(op.regions[i]);
    jump(join);
  }
  if (asks) loop_->joins.pop_back();
  b_.SetInsertPoint(join);
  b_.SetCurrentDebugLocation(line);
  mask_ = before;
  if (facts_.any(facts_.returns_some, op)) mask_.stale = lanes_returned_ = true;
  if (!asks) return;
  Value* const stays = leaves_by(kStays);
  mask_ = {ballot(before.lanes, stays), false};
  BasicBlock* const stay = block("stay");
  b_.CreateCondBr(stays, stay, loop_->joins.empty() ? loop_->latch : loop_->joins.back());
  b_.SetInsertPoint(stay);
}

void Lowering::emit_if(const ir::Op& op, bool lanes_needed_later) {
  Value* const condition = value(op.operands[0]);
  const bool asks = splits_here(op, lanes_needed_later);
  std::vector<Value*> masks(2);
  if (mask_.lanes != nullptr && (asks || facts_.any(facts_.needs_lanes, op))) {
    Value* const all = active();
    const bool in_then = facts_.needs_lanes[op.regions[0]], in_else = facts_.needs_lanes[op.regions[1]];
    Value* chosen = all;
    Value* others = all;
    if ((in_then || in_else) && facts_.varies(op.operands[0])) {
      chosen = ballot(all, condition);
      others = b_.CreateAnd(all, b_.CreateNot(chosen));
    }
    if (in_then) masks[0] = chosen;
    if (in_else) masks[1] = others;
  }
  BasicBlock* const join = block("join");
  std::vector<BasicBlock*> blocks;
  for (const ir::RegionId r : op.regions) blocks.push_back(is_empty(k_, r) ? join : block("branch"));
  b_.CreateCondBr(condition, blocks[0], blocks[1]);
  emit_branches(op, blocks, masks, join, asks);
}

void Lowering::emit_switch(const ir::Op& op, bool lanes_needed_later) {
  Value* const selector = value(op.operands[0]);
  const std::size_t cases = op.cases.size();
  const auto case_value = [&](std::size_t i) {
    return llvm::ConstantInt::get(c_, llvm::APInt(selector->getType()->getIntegerBitWidth(), op.cases[i]));
  };
  const bool asks = splits_here(op, lanes_needed_later);
  std::vector<Value*> masks(op.regions.size());
  if (mask_.lanes != nullptr && (asks || facts_.any(facts_.needs_lanes, op))) {
    Value* const all = active();
    const bool varies = facts_.varies(op.operands[0]);
    Value* none = b_.getTrue();
    for (std::size_t i = 0; i < op.regions.size(); ++i) {
      Value* const mine = i < cases ? b_.CreateICmpEQ(selector, case_value(i)) : none;
      if (i < cases) none = b_.CreateAnd(none, b_.CreateNot(mine));
      if (facts_.needs_lanes[op.regions[i]]) masks[i] = varies ? ballot(all, mine) : all;
    }
  }
  BasicBlock* const join = block("join");
  std::vector<BasicBlock*> blocks;
  for (const ir::RegionId r : op.regions) blocks.push_back(is_empty(k_, r) ? join : block("case"));
  llvm::SwitchInst* const jump_table = b_.CreateSwitch(selector, blocks[cases], static_cast<unsigned>(cases));
  for (std::size_t i = 0; i < cases; ++i) jump_table->addCase(case_value(i), blocks[i]);
  emit_branches(op, blocks, masks, join, asks);
}

// --- leaving --------------------------------------------------------------------------------------------------------

llvm::AllocaInst* Lowering::begin_leaving(ir::OpId loop) {
  if (mask_.lanes == nullptr || !facts_.loop_splits[loop]) return nullptr;
  llvm::IRBuilder<> at_entry(entry_, entry_->begin());
  return at_entry.CreateAlloca(b_.getInt32Ty());
}

// Whether this lane is on its way out of the loop, and by what.
Value* Lowering::leaves_by(std::uint32_t why) { return b_.CreateICmpEQ(b_.CreateLoad(b_.getInt32Ty(), loop_->leaving), i32(why)); }

void Lowering::emit_leave(Opcode code) {
  if (code == Opcode::Return) {
    jump(exit_);  // really gone: neither barriers nor votes wait for a thread that has returned
  } else if (loop_->leaving == nullptr) {
    jump(code == Opcode::Break ? loop_->exit : loop_->latch);
  } else {
    b_.CreateStore(i32(code == Opcode::Break ? kBreaks : kContinues), loop_->leaving);
    jump(loop_->joins.empty() ? loop_->latch : loop_->joins.back());
  }
}

// --- loops ----------------------------------------------------------------------------------------------------------

void Lowering::emit_for(ir::OpId id) {
  const ir::Op& op = k_.ops[id];
  const ir::RegionId body_region = op.regions[0];
  const ir::Type t = op.type;
  const bool sign = ir::is_signed(t);
  Value* const lo = value(op.operands[0]);
  Value* const hi = value(op.operands[1]);
  Value* const step = value(op.operands[2]);
  Value* const one = llvm::ConstantInt::get(lo->getType(), 1);
  const Mask before = mask_;
  const bool tracks = mask_.lanes != nullptr && facts_.needs_lanes[body_region];
  const bool trips_vary = facts_.varies(op.operands[0]) || facts_.varies(op.operands[1]) || facts_.varies(op.operands[2]);
  llvm::AllocaInst* const leaving = begin_leaving(id);
  const bool asks = tracks && (trips_vary || leaving != nullptr || facts_.returns_some[body_region]);
  lanes_returned_ |= facts_.returns_some[body_region];

  Value* const enters = sign ? b_.CreateICmpSLT(lo, hi) : b_.CreateICmpULT(lo, hi);
  Value* outer = nullptr;
  Value* lanes = nullptr;
  if (tracks) outer = lanes = active();
  if (asks && trips_vary) lanes = ballot(lanes, enters);
  const Mask after{outer != nullptr ? outer : before.lanes, (outer != nullptr ? false : before.stale) || facts_.returns_some[body_region]};

  BasicBlock* const from = b_.GetInsertBlock();
  BasicBlock* const body = block("body");
  BasicBlock* const latch = block("latch");
  BasicBlock* const exit = block("after");
  b_.CreateCondBr(enters, body, exit);
  b_.SetInsertPoint(body);
  llvm::PHINode* const i = b_.CreatePHI(lo->getType(), 2);
  i->addIncoming(lo, from);
  values_[id] = i;
  llvm::PHINode* mask = nullptr;
  if (asks) {
    mask = b_.CreatePHI(b_.getInt32Ty(), 2);
    mask->addIncoming(lanes, from);
    lanes = mask;
  }
  Loop loop{.exit = exit, .latch = latch, .leaving = leaving, .joins = {}};
  Loop* const outer_loop = loop_;
  loop_ = &loop;
  if (leaving != nullptr) b_.CreateStore(i32(kStays), leaving);
  mask_ = {lanes, false};
  emit_region(body_region);
  jump(latch);

  // As ops.def says: i < hi, so hi - i fits the unsigned type, and i + step is only used where it stays below hi. Where a positive step
  // cannot pass the type's end anyway, the plain comparison is the form that LLVM's loop passes know best.
  b_.SetInsertPoint(latch);
  b_.SetCurrentDebugLocation(lines_.at(op.loc));
  Value* const next = b_.CreateAdd(i, step, "", !sign, sign);
  const auto* const fixed_step = llvm::dyn_cast<llvm::ConstantInt>(step);
  const auto* const fixed_hi = llvm::dyn_cast<llvm::ConstantInt>(hi);
  bool cannot_wrap = fixed_step != nullptr && fixed_step->isOne();
  if (fixed_step != nullptr && fixed_hi != nullptr && fixed_step->getValue().isStrictlyPositive()) {
    bool overflow = false;
    const llvm::APInt reach = fixed_step->getValue() - 1;
    (void)(sign ? fixed_hi->getValue().sadd_ov(reach, overflow) : fixed_hi->getValue().uadd_ov(reach, overflow));
    cannot_wrap |= !overflow;
  }
  Value* more = nullptr;
  if (cannot_wrap) {
    more = sign ? b_.CreateICmpSLT(next, hi) : b_.CreateICmpULT(next, hi);
  } else {
    more = b_.CreateICmpULT(b_.CreateSub(step, one), b_.CreateSub(b_.CreateSub(hi, i), one));
  }
  if (leaving != nullptr) more = b_.CreateAnd(more, b_.CreateNot(leaves_by(kBreaks)));
  if (asks) mask->addIncoming(ballot(mask, more), latch);
  i->addIncoming(next, latch);
  b_.CreateCondBr(more, body, exit);

  loop_ = outer_loop;
  b_.SetInsertPoint(exit);
  mask_ = after;
}

void Lowering::emit_while(ir::OpId id) {
  const ir::Op& op = k_.ops[id];
  const ir::RegionId condition_region = op.regions[0], body_region = op.regions[1];
  const ir::ValueId condition = k_.ops[k_.regions[condition_region].ops.back()].operands[0];
  const Mask before = mask_;
  const bool returns = facts_.any(facts_.returns_some, op);
  const bool tracks = mask_.lanes != nullptr && facts_.any(facts_.needs_lanes, op);
  llvm::AllocaInst* const leaving = begin_leaving(id);
  if (tracks && facts_.leaves[condition_region])
    fail(op, "a break or continue in the condition of a loop with warp operations is not supported");
  const bool asks = tracks && (facts_.varies(condition) || leaving != nullptr || returns);
  lanes_returned_ |= returns;
  Value* lanes = nullptr;
  if (tracks) lanes = active();
  const Mask after{tracks ? lanes : before.lanes, (tracks ? false : before.stale) || returns};

  BasicBlock* const from = b_.GetInsertBlock();
  BasicBlock* const head = block("head");
  BasicBlock* const body = block("body");
  BasicBlock* const latch = block("latch");
  BasicBlock* const exit = block("after");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* mask = nullptr;
  if (asks) {
    mask = b_.CreatePHI(b_.getInt32Ty(), 2);
    mask->addIncoming(lanes, from);
    lanes = mask;
  }
  Loop loop{.exit = exit, .latch = latch, .leaving = leaving, .joins = {}};
  Loop* const outer_loop = loop_;
  loop_ = &loop;
  if (leaving != nullptr) b_.CreateStore(i32(kStays), leaving);
  mask_ = {lanes, false};
  emit_region(condition_region);
  if (!terminated()) {
    b_.SetCurrentDebugLocation(lines_.at(op.loc));
    Value* const stays = value(condition);
    if (asks) lanes = ballot(mask_.lanes, stays);
    b_.CreateCondBr(stays, body, exit);
  }
  b_.SetInsertPoint(body);
  mask_ = {lanes, false};
  emit_region(body_region);
  jump(latch);

  b_.SetInsertPoint(latch);
  b_.SetCurrentDebugLocation(lines_.at(op.loc));
  Value* const breaks = leaving != nullptr ? leaves_by(kBreaks) : b_.getFalse();
  if (asks) mask->addIncoming(leaving != nullptr || returns ? ballot(lanes, b_.CreateNot(breaks)) : lanes, latch);
  if (leaving != nullptr) {
    b_.CreateCondBr(breaks, exit, head);
  } else {
    b_.CreateBr(head);
  }

  loop_ = outer_loop;
  b_.SetInsertPoint(exit);
  mask_ = after;
}

}  // namespace kiln::codegen::nvptx
