// Kernels with barriers: control flow of the block around loops over its warps, and what warps carry from one to the next in the block's
// context.
#include "host/emitter.h"

namespace kiln::codegen::host {

using ir::Opcode;
using llvm::Value;

namespace {

constexpr std::uint64_t kLine = 64;  // of the cache

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

// What one value of a warp takes in the context.
std::uint64_t held_bytes(ir::Type type, const Shape& shape) {
  if (!shape.varying()) return 8;
  return ir::is_bool(type) ? 4 : kLanes * std::uint64_t{ir::byte_size(type)};
}

}  // namespace

void Emitter::lay_out_context() {
  for (std::uint32_t m = 0; m < k_.mems.size(); ++m) {
    if (!memory_[m].in_context) continue;
    std::uint64_t bytes = kLanes * std::uint64_t{ir::byte_size(k_.mems[m].element)};
    for (unsigned d = 0; d < k_.mems[m].rank; ++d) bytes *= k_.mems[m].extents[d];
    if (plan_) {
      memory_[m].saved_offset = place_in_context(bytes);
    } else {  // one warp after the other
      memory_[m].saved_offset = context_bytes_;
      context_bytes_ += round_up(bytes, kLine);
    }
  }
  if (!plan_) return;
  if (alive_ || structure_.has_return) alive_offset_ = place_in_context(4);
  for (std::uint32_t s = 0; s < k_.slots.size(); ++s) {
    if (!plan_->saved_slot[s]) continue;
    const std::uint64_t bytes = held_bytes(k_.slots[s].type, shapes_.slot[s]);
    slot_offset_[s] = place_in_context(bytes);
    if (!shapes_.set_first[s]) zeroed_.emplace_back(slot_offset_[s], bytes);
  }
  ir::walk(k_, 0, [&](ir::OpId id) {
    if (plan_->saved[id]) value_offset_[id] = place_in_context(held_bytes(k_.op(id).type, shapes_[id]));
  });
  context_bytes_per_warp_ = round_up(context_bytes_per_warp_, kLine);
}

// Of an exact block all warps' share of a thing lies together. How many warps there are at launch moves nothing: all that belongs to a warp
// lies together then.
std::uint64_t Emitter::place_in_context(std::uint64_t bytes) {
  std::uint64_t& end = geometry_.exact() ? context_bytes_ : context_bytes_per_warp_;
  const std::uint64_t at = geometry_.exact() ? end : round_up(end, bytes < kLine ? 8 : kLine);
  end = geometry_.exact() ? at + round_up(bytes * geometry_.most_warps, kLine) : at + bytes;
  return at;
}

Value* Emitter::context_pointer(std::uint64_t offset, std::uint64_t bytes, Value* warp) {
  const std::uint64_t stride = geometry_.exact() ? bytes : context_bytes_per_warp_;
  Value* at = b_.CreateConstGEP1_64(b_.getInt8Ty(), context_, offset);
  return b_.CreateGEP(b_.getInt8Ty(), at, b_.CreateMul(b_.CreateZExt(warp, b_.getInt64Ty()), b_.getInt64(stride)));
}

Value* Emitter::load_saved(ir::ValueId v) {
  const ir::Type type = k_.op(v).type;
  const Shape& shape = shapes_[v];
  llvm::Type* held = held_type(type, shape);
  Value* at = context_pointer(value_offset_[v], held_bytes(type, shape), warp_);
  if (!ir::is_bool(type)) return b_.CreateAlignedLoad(held, at, llvm::Align(8));
  if (shape.varying()) return b_.CreateBitCast(b_.CreateAlignedLoad(b_.getInt32Ty(), at, llvm::Align(4)), held);
  return b_.CreateTrunc(b_.CreateAlignedLoad(b_.getInt8Ty(), at, llvm::Align(8)), held);
}

void Emitter::save(ir::ValueId v, Value* value) {
  const ir::Type type = k_.op(v).type;
  const Shape& shape = shapes_[v];
  Value* at = context_pointer(value_offset_[v], held_bytes(type, shape), warp_);
  if (!ir::is_bool(type)) {
    b_.CreateAlignedStore(value, at, llvm::Align(8));
  } else if (shape.varying()) {
    b_.CreateAlignedStore(bits(value), at, llvm::Align(4));
  } else {
    b_.CreateAlignedStore(b_.CreateZExt(value, b_.getInt8Ty()), at, llvm::Align(8));
  }
}

// Every warp that gets here holds the same value, so the last one's stays.
void Emitter::capture(ir::ValueId v, Value* value, Mask m) {
  llvm::Type* type = lane_type(c_, k_.op(v).type);
  if (captured_[v] == nullptr) {
    captured_[v] = variable(type, "steers");
    new llvm::StoreInst(llvm::Constant::getNullValue(type), captured_[v], variables_end_->getIterator());
  }
  Value* one = shapes_[v].uniform() ? value : b_.CreateExtractElement(spread(v, value), first_lane(m));
  b_.CreateStore(one, captured_[v]);
}

Value* Emitter::block_scalar(ir::ValueId v) {
  if (plan_->block_value[v]) return raw(v);
  if (captured_[v] == nullptr) return llvm::Constant::getNullValue(lane_type(c_, k_.op(v).type));  // nobody computes it: no lane gets there
  return b_.CreateLoad(captured_[v]->getAllocatedType(), captured_[v]);
}

void Emitter::begin_block_context() {
  const bool at_once = geometry_.exact();  // all warps' share of a thing
  const auto clear = [&](Value* at, std::uint64_t bytes) { b_.CreateMemSet(at, b_.getInt8(0), bytes, llvm::MaybeAlign(8)); };
  for (const auto& [offset, bytes] : zeroed_) {
    if (at_once) clear(b_.CreateConstGEP1_64(b_.getInt8Ty(), context_, offset), bytes * geometry_.most_warps);
  }
  for (std::uint32_t s = 0; s < k_.slots.size(); ++s) {
    if (slot_[s] && plan_->block_slot[s]) b_.CreateStore(llvm::Constant::getNullValue(slot_[s]->getAllocatedType()), slot_[s]);
  }
  if (!alive_ && (at_once || zeroed_.empty())) return;
  Value* const in_tail = b_.CreateSub(b_.CreateShl(b_.getInt32(1), tail_lanes_), b_.getInt32(1));
  each_warp(nullptr, [&](Value* w, Value*) -> Value* {
    for (const auto& [offset, bytes] : zeroed_) {
      if (!at_once) clear(context_pointer(offset, bytes, w), bytes);
    }
    if (!alive_) return nullptr;
    Value* const present = b_.CreateSelect(b_.CreateICmpULT(w, full_warps_), b_.getInt32(~0u), in_tail);
    b_.CreateAlignedStore(present, context_pointer(alive_offset_, 4, w), llvm::Align(4));
    return nullptr;
  });
}

void Emitter::emit_block_region(ir::RegionId region) {
  for (const Step& step : plan_->steps[region]) {
    switch (step.kind) {
      case Step::Kind::Segment: emit_segment(region, step); break;
      case Step::Kind::Scalar: emit_block_scalar(step.op); break;
      case Step::Kind::Control: emit_block_control(step.op); break;
    }
  }
}

bool Emitter::is_empty_segment(ir::RegionId region, const Step& step) const {
  for (std::size_t i = step.begin; i < step.end; ++i) {
    const ir::OpId id = k_.regions[region].ops[i];
    const ir::Op& op = k_.op(id);
    if (ir::is_block_barrier(op.code)) return false;
    if (plan_->block_value[id] || (op.code == Opcode::Set && plan_->block_slot[op.index])) continue;
    if (plan_->captured[id] || !plan_->rematerialise[id]) return false;
  }
  return true;
}

void Emitter::begin_votes(ir::RegionId region, const Step& step) {
  const ir::OpId id = k_.regions[region].ops[step.end - 1];
  const ir::Op& op = k_.op(id);
  if (!ir::is_block_barrier(op.code)) return;
  llvm::Type* type = lane_type(c_, op.type);
  if (vote_[id] == nullptr) vote_[id] = variable(type, "vote");
  b_.CreateStore(op.code == Opcode::BarrierAll ? llvm::Constant::getAllOnesValue(type) : llvm::Constant::getNullValue(type), vote_[id]);
}

void Emitter::emit_block_vote(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const ir::ValueId c = op.operands[0];
  llvm::AllocaInst* vote = vote_[id];
  Value* so_far = b_.CreateLoad(vote->getAllocatedType(), vote);
  const auto said = [&] { return bits(b_.CreateAnd(lanes(m), vector(c))); };
  Value* now = nullptr;
  switch (op.code) {
    case Opcode::BarrierAny: now = b_.CreateOr(so_far, b_.CreateICmpNE(said(), b_.getInt32(0))); break;
    case Opcode::BarrierAll: now = b_.CreateAnd(so_far, b_.CreateICmpEQ(said(), bits(m))); break;
    case Opcode::BarrierCount: now = b_.CreateAdd(so_far, b_.CreateIntrinsic(llvm::Intrinsic::ctpop, {b_.getInt32Ty()}, {said()})); break;
    default: now = shapes_[c].uniform() ? scalar(c) : b_.CreateExtractElement(vector(c), first_lane(m)); break;
  }
  b_.CreateStore(now, vote);
}

void Emitter::emit_segment(ir::RegionId region, const Step& step) {
  if (is_empty_segment(region, step)) return;
  begin_votes(region, step);
  // Locals that cross cuts are loaded before and stored after; in between they are variables like all others.
  std::vector<char> used(k_.slots.size(), 0), set(k_.slots.size(), 0);
  for (std::size_t i = step.begin; i < step.end; ++i) {
    const auto look = [&](ir::OpId id) {
      const ir::Op& op = k_.op(id);
      if (op.code == Opcode::Get || op.code == Opcode::Set) used[op.index] = 1;
      if (op.code == Opcode::Set) set[op.index] = 1;
    };
    const ir::OpId id = k_.regions[region].ops[i];
    look(id);
    for (const ir::RegionId inner : k_.op(id).regions) ir::walk(k_, inner, look);
  }
  const auto slot_pointer = [&](std::uint32_t s) {
    return context_pointer(slot_offset_[s], held_bytes(k_.slots[s].type, shapes_.slot[s]), warp_);
  };
  segment_region_ = region;
  segment_end_ = step.end;
  const auto run = [&](Mask m) {
    begin_body();
    for (std::uint32_t s = 0; s < k_.slots.size(); ++s) {
      if (!used[s] || plan_->block_slot[s]) continue;
      llvm::Type* type = slot_[s]->getAllocatedType();
      if (!plan_->saved_slot[s]) {
        b_.CreateStore(llvm::Constant::getNullValue(type), slot_[s]);
      } else if (ir::is_bool(k_.slots[s].type)) {
        llvm::Type* word = type->isVectorTy() ? b_.getInt32Ty() : b_.getInt8Ty();
        Value* v = b_.CreateAlignedLoad(word, slot_pointer(s), llvm::Align(4));
        b_.CreateStore(type->isVectorTy() ? b_.CreateBitCast(v, type) : b_.CreateTrunc(v, type), slot_[s]);
      } else {
        b_.CreateStore(b_.CreateAlignedLoad(type, slot_pointer(s), llvm::Align(8)), slot_[s]);
      }
    }
    if (alive_) b_.CreateStore(lanes(m), alive_);
    emit_ops(region, step.begin, m);
    branch_to(body_end_);
    start(body_end_);
    for (std::uint32_t s = 0; s < k_.slots.size(); ++s) {
      if (!set[s] || plan_->block_slot[s] || !plan_->saved_slot[s]) continue;
      llvm::Type* type = slot_[s]->getAllocatedType();
      Value* v = b_.CreateLoad(type, slot_[s]);
      if (ir::is_bool(k_.slots[s].type)) v = type->isVectorTy() ? bits(v) : b_.CreateZExt(v, b_.getInt8Ty());
      b_.CreateAlignedStore(v, slot_pointer(s), ir::is_bool(k_.slots[s].type) ? llvm::Align(4) : llvm::Align(8));
    }
    if (alive_)
      b_.CreateAlignedStore(bits(b_.CreateLoad(alive_->getAllocatedType(), alive_)), context_pointer(alive_offset_, 4, warp_),
                            llvm::Align(4));
  };
  emit_warps([&](Mask m) {
    if (!alive_) return run(m);
    // Who is still there is known at run time only.
    Value* there = b_.CreateAlignedLoad(b_.getInt32Ty(), context_pointer(alive_offset_, 4, warp_), llvm::Align(4));
    Block *some = block("some"), *done = block("turn.done");
    if (m.full()) {
      Block *all = block("all"), *not_all = block("not.all");
      b_.CreateCondBr(b_.CreateICmpEQ(there, b_.getInt32(~0u)), all, not_all);
      start(all);
      run(Mask{});
      branch_to(done);
      start(not_all);
    }
    b_.CreateCondBr(b_.CreateICmpNE(there, b_.getInt32(0)), some, done);
    start(some);
    run(Mask{b_.CreateBitCast(there, lanes_of(b_.getInt1Ty()))});
    branch_to(done);
    start(done);
  });
  segment_region_ = ir::kNone;
}

void Emitter::emit_block_scalar(ir::OpId id) {
  const ir::Op& op = k_.op(id);
  if (ir::is_block_barrier(op.code)) {
    block_value_[id] = b_.CreateLoad(vote_[id]->getAllocatedType(), vote_[id]);
  } else if (op.code == Opcode::Get) {
    block_value_[id] = b_.CreateLoad(slot_[op.index]->getAllocatedType(), slot_[op.index]);
  } else if (op.code == Opcode::Set) {
    b_.CreateStore(raw(op.operands[0]), slot_[op.index]);
  } else {
    block_value_[id] = arithmetic(id);
  }
}

// A loop of the block could wait for ever for warps that are all gone.
void Emitter::leave_if_block_is_done() {
  if (!alive_) return;
  Value* const there = each_warp(b_.getInt32(0), [&](Value* w, Value* before) {
    return b_.CreateOr(before, b_.CreateAlignedLoad(b_.getInt32Ty(), context_pointer(alive_offset_, 4, w), llvm::Align(4)));
  });
  Block* go_on = block("block.goes.on");
  b_.CreateCondBr(b_.CreateICmpEQ(there, b_.getInt32(0)), block_end_, go_on);
  start(go_on);
}

void Emitter::emit_block_control(ir::OpId id) {
  const ir::Op& op = k_.op(id);
  switch (op.code) {
    case Opcode::If: {
      Block *then_block = block("block.then"), *else_block = block("block.else"), *end = block("block.endif");
      b_.CreateCondBr(block_scalar(op.operands[0]), then_block, else_block);
      start(then_block);
      emit_block_region(op.regions[0]);
      branch_to(end);
      start(else_block);
      emit_block_region(op.regions[1]);
      branch_to(end);
      start(end);
      return;
    }
    case Opcode::Switch: {
      Block* end = block("block.endswitch");
      const ir::Type type = k_.op(op.operands[0]).type;
      std::vector<Block*> target;
      for (std::size_t i = 0; i < op.regions.size(); ++i) target.push_back(block("block.case"));
      llvm::SwitchInst* sw = b_.CreateSwitch(block_scalar(op.operands[0]), target.back(), static_cast<unsigned>(op.cases.size()));
      for (std::size_t i = 0; i < op.cases.size(); ++i)
        sw->addCase(llvm::cast<llvm::ConstantInt>(constant(lane_type(c_, type), type, op.cases[i])), target[i]);
      for (std::size_t i = 0; i < op.regions.size(); ++i) {
        start(target[i]);
        emit_block_region(op.regions[i]);
        branch_to(end);
      }
      start(end);
      return;
    }
    case Opcode::For: {
      Block *head = block("block.for"), *next = block("block.for.next"), *end = block("block.for.end");
      Value *lo = block_scalar(op.operands[0]), *hi = block_scalar(op.operands[1]), *step = block_scalar(op.operands[2]);
      llvm::AllocaInst* i = variable(lo->getType(), "i");
      b_.CreateStore(lo, i);
      b_.CreateCondBr(ir::is_signed(op.type) ? b_.CreateICmpSLT(lo, hi) : b_.CreateICmpULT(lo, hi), head, end);
      start(head);
      leave_if_block_is_done();
      Value* now = b_.CreateLoad(i->getAllocatedType(), i);
      block_value_[id] = now;
      block_loops_.push_back({id, end, next});
      emit_block_region(op.regions[0]);
      block_loops_.pop_back();
      branch_to(next);
      start(next);
      Value* one = llvm::ConstantInt::get(lo->getType(), 1);
      Value* goes_on = b_.CreateICmpULT(b_.CreateSub(step, one), b_.CreateSub(b_.CreateSub(hi, now), one));
      b_.CreateStore(b_.CreateAdd(now, step), i);
      b_.CreateCondBr(goes_on, head, end);
      start(end);
      return;
    }
    case Opcode::While: {
      Block *head = block("block.while"), *body = block("block.while.body"), *end = block("block.while.end");
      branch_to(head);
      start(head);
      leave_if_block_is_done();
      block_loops_.push_back({id, end, head});
      emit_block_region(op.regions[0]);
      const ir::OpId yield = k_.regions[op.regions[0]].ops.back();
      b_.CreateCondBr(block_scalar(k_.op(yield).operands[0]), body, end);
      start(body);
      emit_block_region(op.regions[1]);
      block_loops_.pop_back();
      branch_to(head);
      start(end);
      return;
    }
    case Opcode::Break: branch_to(block_loops_.back().exit); break;
    case Opcode::Continue: branch_to(block_loops_.back().next); break;
    case Opcode::Return: branch_to(block_end_); break;
    default: return;  // yield: its loop has looked at it
  }
  start(block("block.after.leave"));
}

}  // namespace kiln::codegen::host
