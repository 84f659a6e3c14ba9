// What a kernel tells the host while it runs: faults, checks that fail, traps, logs.
#include <llvm/IR/MDBuilder.h>

#include <cstddef>

#include "host/emitter.h"

namespace kiln::codegen::host {

using llvm::Value;

Value* Emitter::lane_bits(ir::ValueId v, Value* lane) {
  Value* x = shapes_[v].uniform() ? scalar(v) : b_.CreateExtractElement(vector(v), lane);
  return b_.CreateZExt(b_.CreateBitCast(x, b_.getIntNTy(ir::bit_width(k_.op(v).type))), b_.getInt64Ty());
}

// Fills the fault record when nobody has before (ir::FaultRecord). A block that is given at launch comes behind the block's number: x, y.
llvm::Function* Emitter::report_function() {
  if (report_) return report_;
  llvm::Type *pointer = b_.getPtrTy(), *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
  std::vector<llvm::Type*> parameters = {pointer, i32, i32, i64, i64, i32, i32, i32, i32};
  if (!geometry_.exact()) parameters.insert(parameters.end(), {i32, i32});
  report_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), parameters, false), llvm::Function::InternalLinkage,
                                   "kiln_report", module_);
  report_->addFnAttr(llvm::Attribute::NoUnwind);
  report_->addFnAttr(llvm::Attribute::NoInline);
  report_->addFnAttr(llvm::Attribute::Cold);
  llvm::IRBuilder<> b(Block::Create(c_, "entry", report_));
  Block *claim = Block::Create(c_, "claim", report_), *fill = Block::Create(c_, "fill", report_),
        *done = Block::Create(c_, "done", report_);
  Value* record = report_->getArg(0);
  b.CreateCondBr(b.CreateIsNull(record), done, claim);
  b.SetInsertPoint(claim);
  Value* old = b.CreateAtomicCmpXchg(record, b.getInt32(0), b.getInt32(1), llvm::MaybeAlign(4), llvm::AtomicOrdering::Acquire,
                                     llvm::AtomicOrdering::Monotonic);
  b.CreateCondBr(b.CreateExtractValue(old, 1), fill, done);
  b.SetInsertPoint(fill);
  const auto put = [&](std::size_t offset, Value* v) {
    b.CreateStore(v, b.CreateConstGEP1_32(b.getInt8Ty(), record, static_cast<unsigned>(offset)));
  };
  put(offsetof(ir::FaultRecord, kind), b.getInt32(1));
  put(offsetof(ir::FaultRecord, site), report_->getArg(1));
  put(offsetof(ir::FaultRecord, dimension), report_->getArg(2));
  put(offsetof(ir::FaultRecord, index), report_->getArg(3));
  put(offsetof(ir::FaultRecord, extent), report_->getArg(4));
  const auto dim = [&](unsigned a) { return geometry_.exact() ? block_dim_[a] : report_->getArg(9 + a); };
  const std::array<Value*, 3> thread = thread_axes(b, report_->getArg(5), dim(0), dim(1));
  for (unsigned axis = 0; axis < 3; ++axis) {
    put(offsetof(ir::FaultRecord, thread) + 4 * axis, thread[axis]);
    put(offsetof(ir::FaultRecord, block) + 4 * axis, report_->getArg(6 + axis));
  }
  b.CreateAlignedStore(b.getInt32(2), record, llvm::Align(4))->setAtomic(llvm::AtomicOrdering::Release);
  b.CreateBr(done);
  b.SetInsertPoint(done);
  b.CreateRetVoid();
  return report_;
}

void Emitter::call_report(std::uint32_t site, Value* dimension, Value* index, Value* extent, Value* lane) {
  std::vector<Value*> arguments = {fault_record_,     b_.getInt32(site), dimension,    index,       extent,
                                   lane_thread(lane), block_id_[0],      block_id_[1], block_id_[2]};
  if (!geometry_.exact()) arguments.insert(arguments.end(), {block_dim_[0], block_dim_[1]});
  b_.CreateCall(report_function(), arguments);
}

// The first lane for which the condition does not hold is reported, with its values.
void Emitter::emit_check(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const ir::ValueId condition = op.operands[0];
  Value* failing = nullptr;
  if (shapes_[condition].uniform()) failing = b_.CreateSelect(scalar(condition), b_.getInt32(0), bits(m));
  else failing = b_.CreateAnd(bits(m), b_.CreateNot(bits(vector(condition))));
  Block *failed = block("check.failed"), *held = block("check.held");
  b_.CreateCondBr(b_.CreateICmpNE(failing, b_.getInt32(0)), failed, held, llvm::MDBuilder(c_).createBranchWeights(1, 1u << 20));
  start(failed);
  Value* lane = first_lane_of(b_, failing);
  const auto number = [&](std::size_t i) -> Value* { return i < op.operands.size() ? lane_bits(op.operands[i], lane) : b_.getInt64(0); };
  Value *first = number(1), *second = number(2);
  call_report(op.site, b_.getInt32(0), first, second, lane);
  branch_to(held);
  start(held);
}

// The return behind it ends the threads. That one trapped is noted whoever has the record.
void Emitter::emit_trap(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  call_report(op.site, b_.getInt32(0), b_.getInt64(0), b_.getInt64(0), first_lane(m));
  Block *note = block("trap.note"), *noted = block("trap.noted");
  b_.CreateCondBr(b_.CreateIsNull(fault_record_), noted, note);
  start(note);
  Value* at = b_.CreateConstGEP1_32(b_.getInt8Ty(), fault_record_, offsetof(ir::FaultRecord, trapped));
  b_.CreateAlignedStore(b_.getInt32(op.site + 1), at, llvm::Align(4))->setAtomic(llvm::AtomicOrdering::Monotonic);
  branch_to(noted);
  start(noted);
}

// The active lanes take their records at once, in the order of the lanes.
void Emitter::emit_log(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const auto at = [&](Value* base, std::uint64_t offset) { return b_.CreateConstGEP1_64(b_.getInt8Ty(), base, offset); };
  Block *take = block("log.take"), *look = block("log.look"), *write = block("log.write"), *next = block("log.next"),
        *done = block("logged");
  for (const ir::ValueId v : op.operands) raw(v);  // where it dominates every use
  b_.CreateCondBr(b_.CreateIsNull(log_), done, take);
  start(take);
  Value* lanes = bits(m);
  Value* count = b_.CreateZExt(b_.CreateUnaryIntrinsic(llvm::Intrinsic::ctpop, lanes), b_.getInt64Ty());
  Value* first = b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, log_, count, llvm::MaybeAlign(8), llvm::AtomicOrdering::Monotonic);
  Value* capacity = b_.CreateAlignedLoad(b_.getInt64Ty(), at(log_, offsetof(ir::LogHeader, capacity)), llvm::Align(8));
  Block* before = b_.GetInsertBlock();
  branch_to(look);
  start(look);
  llvm::PHINode *left = b_.CreatePHI(b_.getInt32Ty(), 2), *index = b_.CreatePHI(b_.getInt64Ty(), 2);
  left->addIncoming(lanes, before);
  index->addIncoming(first, before);
  b_.CreateCondBr(b_.CreateICmpULT(index, capacity), write, done);  // past the end all others are, too
  start(write);
  Value* lane = first_lane_of(b_, left);
  Value* place = b_.CreateMul(index, b_.getInt64(log_stride_));
  Value* record = b_.CreateGEP(b_.getInt8Ty(), at(log_, sizeof(ir::LogHeader)), place);
  const std::array<Value*, 3> thread = thread_axes(b_, lane_thread(lane), block_dim_[0], block_dim_[1]);
  for (unsigned axis = 0; axis < 3; ++axis) {
    b_.CreateAlignedStore(thread[axis], at(record, offsetof(ir::LogRecord, thread) + 4 * axis), llvm::Align(4));
    b_.CreateAlignedStore(block_id_[axis], at(record, offsetof(ir::LogRecord, block) + 4 * axis), llvm::Align(4));
  }
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    b_.CreateAlignedStore(lane_bits(op.operands[i], lane), at(record, sizeof(ir::LogRecord) + 8 * i), llvm::Align(8));
  b_.CreateAlignedStore(b_.getInt32(op.site + 1), record, llvm::Align(8))->setAtomic(llvm::AtomicOrdering::Release);
  branch_to(next);
  start(next);
  Value* rest = b_.CreateAnd(left, b_.CreateSub(left, b_.getInt32(1)));
  left->addIncoming(rest, next);
  index->addIncoming(b_.CreateAdd(index, b_.getInt64(1)), next);
  b_.CreateCondBr(b_.CreateICmpNE(rest, b_.getInt32(0)), look, done);
  start(done);
}

}  // namespace kiln::codegen::host
