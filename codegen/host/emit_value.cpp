// Values of a warp: scalars, base + stride * lane, vectors; locals.
#include <algorithm>

#include "host/emitter.h"

namespace kiln::codegen::host {

using ir::Opcode;
using llvm::Value;

llvm::Type* Emitter::held_type(ir::Type type, const Shape& shape) const { return value_type(c_, type, shape.varying() ? kLanes : 0); }

namespace {

bool is_query_of_launch(Opcode c) {
  switch (c) {
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

}  // namespace

bool Emitter::at_hand(ir::ValueId v) const {
  const ir::Op& op = k_.op(v);
  if (!plan_ || op.code == Opcode::Const || is_query_of_launch(op.code)) return true;
  if (block_value_[v] != nullptr || made_[v] == body_ || plan_->saved[v]) return true;
  return plan_->rematerialise[v] &&
         std::all_of(op.operands.begin(), op.operands.end(), [this](ir::ValueId operand) { return at_hand(operand); });
}

Value* Emitter::raw(ir::ValueId v) {
  const ir::Op& op = k_.op(v);
  if (op.code == Opcode::Const) return constant(lane_type(c_, op.type), op.type, op.imm);
  if (is_query_of_launch(op.code)) return query(v);
  if (block_value_[v] != nullptr) return block_value_[v];
  if (made_[v] == body_) return value_[v];
  // From another segment: made again, or loaded, once for this body, where it dominates every use.
  const llvm::IRBuilderBase::InsertPointGuard keep(b_);
  b_.SetInsertPoint(body_prologue_);
  Value* again;
  if (!plan_->rematerialise[v]) {
    if (!plan_->saved[v])
      throw CompileError("kernel '" + k_.name +
                             "': the code for the CPU uses a value behind a barrier that was not kept for it (a defect " +
                             "of the code generator; please report it)",
                         false);
    again = load_saved(v);
  } else {
    again = ir::is_pure(op.code) && !op.operands.empty() ? arithmetic(v) : query(v);
  }
  value_[v] = again;
  made_[v] = body_;
  return again;
}

Value* Emitter::scalar(ir::ValueId v) { return raw(v); }

Value* Emitter::vector(ir::ValueId v) { return spread(v, raw(v)); }

Value* Emitter::spread(ir::ValueId v, Value* held) {
  const Shape& shape = shapes_[v];
  if (shape.varying()) return held;
  Value* base = splat(held);
  return shape.affine() ? b_.CreateAdd(base, offsets(held->getType(), shape)) : base;
}

Value* Emitter::offsets(llvm::Type* lane, const Shape& shape) {
  std::vector<llvm::Constant*> each;
  for (unsigned l = 0; l < kLanes; ++l) {
    const std::int64_t offset = shape.column * (l % geometry_.width) + shape.row * (l / geometry_.width);
    each.push_back(llvm::ConstantInt::get(lane, static_cast<std::uint64_t>(offset), true, true));
  }
  return llvm::ConstantVector::get(each);
}

void Emitter::define(ir::ValueId v, Value* value, Mask m) {
  value_[v] = value;
  made_[v] = body_;
  if (!plan_) return;
  if (plan_->saved[v]) save(v, value);
  if (plan_->captured[v]) capture(v, value, m);
}

Value* Emitter::lane_numbers() {
  std::vector<llvm::Constant*> each;
  for (unsigned l = 0; l < kLanes; ++l) each.push_back(b_.getInt32(l));
  return llvm::ConstantVector::get(each);
}

// With one bit more, which decides only where there is no other, so that the count is never of zero.
Value* first_lane_of(llvm::IRBuilder<>& b, Value* set) {
  Value* const some = b.CreateOr(set, b.getInt32(1u << (kLanes - 1)));
  return b.CreateIntrinsic(llvm::Intrinsic::cttz, {b.getInt32Ty()}, {some, b.getTrue()});
}

Value* last_lane_of(llvm::IRBuilder<>& b, Value* set) {
  Value* const some = b.CreateOr(set, b.getInt32(1));
  return b.CreateSub(b.getInt32(kLanes - 1), b.CreateIntrinsic(llvm::Intrinsic::ctlz, {b.getInt32Ty()}, {some, b.getTrue()}));
}

Value* Emitter::first_lane(Mask m) {
  if (m.full()) return b_.getInt32(0);
  return first_lane_of(b_, bits(m));
}

Value* Emitter::last_lane(Mask m) {
  if (m.full()) return b_.getInt32(kLanes - 1);
  return last_lane_of(b_, bits(m));
}

llvm::AllocaInst* Emitter::scratch_array(llvm::Type* type) {
  std::vector<llvm::AllocaInst*>& made = scratch_lanes_[type];
  std::size_t& taken = scratch_taken_[type];
  if (taken == made.size()) made.push_back(variable(type, "lanes"));
  return made[taken++];
}

// In pieces of 32 bytes: CPUs do not forward a wider store to the loads of single lanes that follow.
llvm::AllocaInst* Emitter::lanes_in_memory(Value* v) {
  llvm::AllocaInst* const array = scratch_array(v->getType());
  llvm::Type* lane = v->getType()->getScalarType();
  const unsigned per_piece = 256 / static_cast<unsigned>(lane->getPrimitiveSizeInBits());
  if (llvm::isa<llvm::Constant>(v) || per_piece >= kLanes || !level_.avx512) {
    b_.CreateStore(v, array);
    return array;
  }
  for (unsigned at = 0; at < kLanes; at += per_piece) {
    std::vector<int> pick;
    for (unsigned l = at; l < at + per_piece; ++l) pick.push_back(static_cast<int>(l));
    b_.CreateAlignedStore(b_.CreateShuffleVector(v, pick), b_.CreateConstGEP1_32(lane, array, at), llvm::Align(32),
                          true);  // else LLVM joins them
  }
  return array;
}

Value* Emitter::query(ir::OpId id) {
  const ir::Op& op = k_.op(id);
  llvm::Type* type = lane_type(c_, op.type);
  const auto sized = [&](Value* v) { return b_.CreateZExtOrTrunc(v, type); };
  switch (op.code) {
    case Opcode::Param: return parameter_[op.index];
    case Opcode::Extent: return sized(extent(op.index, op.attr));
    case Opcode::Size: {
      Value* n = extent(op.index, 0);
      for (unsigned d = 1; d < k_.mems[op.index].rank; ++d) n = b_.CreateMul(n, extent(op.index, d));
      return sized(n);
    }
    case Opcode::Stride: return sized(memory_[op.index].pitch[op.attr]);
    case Opcode::BlockId: return sized(block_id_[op.attr]);
    case Opcode::BlockDim: return sized(block_dim_[op.attr]);
    case Opcode::GridDim: return sized(grid_dim_[op.attr]);
    case Opcode::WarpId: return sized(warp_);
    case Opcode::LaneId: return llvm::ConstantInt::get(type, 0);  // the base
    case Opcode::ThreadId: {
      Value* v = thread(op.attr);
      return b_.CreateZExtOrTrunc(v, v->getType()->isVectorTy() ? static_cast<llvm::Type*>(lanes_of(type)) : type);
    }
    case Opcode::GlobalId: {
      Value* v = thread(op.attr);
      Value* base = b_.CreateMul(sized(block_id_[op.attr]), sized(block_dim_[op.attr]));
      if (!v->getType()->isVectorTy()) return b_.CreateAdd(base, sized(v));
      return b_.CreateAdd(splat(base), b_.CreateZExtOrTrunc(v, lanes_of(type)));
    }
    default: unsupported(id, "the operation '" + std::string(ir::info(op.code).mnemonic) + "' is not built for the CPU");
  }
}

// The counter is read where it stands: for LLVM the intrinsic, and a function that it does not know, may write memory.
Value* Emitter::clock(Opcode code) {
  if (code == Opcode::Clock) return b_.CreateIntrinsic(b_.getInt64Ty(), llvm::Intrinsic::readcyclecounter, {});
  return b_.CreateCall(llvm::FunctionType::get(b_.getInt64Ty(), false), global_time_);
}

Value* Emitter::arithmetic(ir::OpId id) {
  const ir::Op& op = k_.op(id);
  const bool each = shapes_[id].varying();
  std::vector<Value*> in;
  for (std::size_t i = 0; i < op.operands.size(); ++i) {
    const ir::ValueId v = op.operands[i];
    const bool keep_scalar = op.code == Opcode::Select && i == 0 && shapes_[v].uniform();
    in.push_back(each && !keep_scalar ? vector(v) : scalar(v));
  }
  const ir::Type operand_type = k_.op(op.operands[op.code == Opcode::Select ? 1 : 0]).type;
  return arith_.emit(op.code, op.type, operand_type, in);
}

void Emitter::emit_get(ir::OpId id, Mask m) {
  llvm::AllocaInst* slot = slot_[k_.op(id).index];
  define(id, b_.CreateLoad(slot->getAllocatedType(), slot), m);
}

void Emitter::emit_set(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  llvm::AllocaInst* slot = slot_[op.index];
  Value* v = shapes_.slot[op.index].varying() ? vector(op.operands[0]) : scalar(op.operands[0]);
  if (!m.full() && !shapes_.coherent[op.index]) v = b_.CreateSelect(m.lanes, v, b_.CreateLoad(slot->getAllocatedType(), slot));
  b_.CreateStore(v, slot);
}

}  // namespace kiln::codegen::host
