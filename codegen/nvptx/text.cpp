// What a kernel tells the host while it runs: faults, checks that fail, traps, logs; and the clocks.
#include <llvm/IR/InlineAsm.h>
#include <llvm/IR/MDBuilder.h>

#include <cstddef>

#include "lowering.h"

namespace kiln::codegen::nvptx {

using ir::FaultRecord;
using llvm::AtomicOrdering;
using llvm::BasicBlock;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

// The bits of a value, in 64.
Value* Lowering::bits_of(ir::ValueId v) {
  Value* const bits = b_.CreateBitCast(value(v), b_.getIntNTy(ir::bit_width(k_.ops[v].type)));
  return b_.CreateZExt(bits, b_.getInt64Ty());
}

void Lowering::emit_check(const ir::Op& op) {
  if (fault_record_ == nullptr) return;
  BasicBlock* const failed = block("failed");
  BasicBlock* const good = block("held");
  b_.CreateCondBr(value(op.operands[0]), good, failed, llvm::MDBuilder(c_).createBranchWeights(1u << 20, 1));
  b_.SetInsertPoint(failed);
  const auto number = [&](std::size_t i) { return i < op.operands.size() ? bits_of(op.operands[i]) : b_.getInt64(0); };
  b_.CreateCall(fault_function(), {fault_record_, i32(op.site), i32(0), number(1), number(2)})->setDoesNotThrow();
  b_.CreateBr(good);
  b_.SetInsertPoint(good);
}

// That a thread trapped is noted whoever has the record, and is on its way to the host before the device stops. By inline assembly, so that
// LLVM sees a path like any other here: what it makes of the end of a path is not good for the code around it.
void Lowering::emit_trap(const ir::Op& op) {
  BasicBlock* const note = block("note");
  BasicBlock* const stop = block("stop");
  b_.CreateCall(fault_function(), {fault_record_, i32(op.site), i32(0), b_.getInt64(0), b_.getInt64(0)})->setDoesNotThrow();
  b_.CreateCondBr(b_.CreateIsNull(fault_record_), stop, note);
  b_.SetInsertPoint(note);
  Value* const at = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), fault_record_, offsetof(FaultRecord, trapped));
  b_.CreateAlignedStore(i32(op.site + 1), at, llvm::Align(4))->setAtomic(AtomicOrdering::Monotonic);
  b_.CreateFence(AtomicOrdering::SequentiallyConsistent);
  b_.CreateBr(stop);
  b_.SetInsertPoint(stop);
  b_.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(b_.getVoidTy(), false), "trap;", "~{memory}", true))->setDoesNotThrow();
}

void Lowering::emit_log(const ir::Op& op) {
  llvm::Type* const wide = b_.getInt64Ty();
  const auto at = [&](Value* base, std::uint64_t offset) { return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), base, offset); };
  BasicBlock* const take = block("take");
  BasicBlock* const write = block("write");
  BasicBlock* const done = block("logged");
  b_.CreateCondBr(b_.CreateIsNull(log_), done, take);
  b_.SetInsertPoint(take);
  Value* const index = b_.CreateAtomicRMW(llvm::AtomicRMWInst::Add, log_, b_.getInt64(1), llvm::Align(8), AtomicOrdering::Monotonic);
  Value* const capacity = b_.CreateAlignedLoad(wide, at(log_, offsetof(ir::LogHeader, capacity)), llvm::Align(8));
  b_.CreateCondBr(b_.CreateICmpULT(index, capacity), write, done);
  b_.SetInsertPoint(write);
  Value* const place = b_.CreateMul(index, b_.getInt64(log_stride_));
  Value* const record = b_.CreateGEP(b_.getInt8Ty(), at(log_, sizeof(ir::LogHeader)), place);
  for (unsigned axis = 0; axis < 3; ++axis) {
    Value* const thread = special_register(Intrinsic::nvvm_read_ptx_sreg_tid_x, axis);
    Value* const of_block = special_register(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, axis);
    b_.CreateAlignedStore(thread, at(record, offsetof(ir::LogRecord, thread) + 4 * axis), llvm::Align(4));
    b_.CreateAlignedStore(of_block, at(record, offsetof(ir::LogRecord, block) + 4 * axis), llvm::Align(4));
  }
  for (std::size_t i = 0; i < op.operands.size(); ++i)
    b_.CreateAlignedStore(bits_of(op.operands[i]), at(record, sizeof(ir::LogRecord) + 8 * i), llvm::Align(8));
  // Where the launch is broken off, what counts as written is whole.
  b_.CreateAlignedStore(i32(op.site + 1), record, llvm::Align(8))->setAtomic(AtomicOrdering::Release);
  b_.CreateBr(done);
  b_.SetInsertPoint(done);
}

// Volatile, and a use of all memory: LLVM's own intrinsics for these may pass stores.
Value* Lowering::read_clock(ir::Opcode code) {
  const char* const text = code == ir::Opcode::Clock ? "mov.u64 $0, %clock64;" : "mov.u64 $0, %globaltimer;";
  return b_.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(b_.getInt64Ty(), false), text, "=l,~{memory}", true));
}

// A function of its own, so that each access pays for a call in a cold block and nothing else. The only call in our PTX.
llvm::Function* Lowering::fault_function() {
  if (fault_function_ != nullptr) return fault_function_;
  llvm::Type* const word = b_.getInt32Ty();
  llvm::Type* const wide = b_.getInt64Ty();
  llvm::Function* const f =
      llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {fault_record_->getType(), word, word, wide, wide}, false),
                             llvm::GlobalValue::InternalLinkage, "$fault", m_);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr(llvm::Attribute::Cold);
  f->setDoesNotThrow();
  fault_function_ = f;
  const llvm::IRBuilderBase::InsertPointGuard guard(b_);
  b_.SetCurrentDebugLocation({});
  Value* const record = f->getArg(0);
  BasicBlock* const entry = BasicBlock::Create(c_, "entry", f);
  BasicBlock* const look = BasicBlock::Create(c_, "look", f);
  BasicBlock* const claim = BasicBlock::Create(c_, "claim", f);
  BasicBlock* const fill = BasicBlock::Create(c_, "fill", f);
  BasicBlock* const out = BasicBlock::Create(c_, "out", f);
  b_.SetInsertPoint(entry);
  b_.CreateCondBr(b_.CreateIsNull(record), out, look);
  // Most faulting threads come after the first: they look before they fight for the record.
  b_.SetInsertPoint(look);
  llvm::LoadInst* const state = b_.CreateAlignedLoad(word, record, llvm::Align(4));
  state->setAtomic(AtomicOrdering::Monotonic);
  b_.CreateCondBr(b_.CreateICmpEQ(state, i32(0)), claim, out);
  b_.SetInsertPoint(claim);
  Value* const claimed =
      b_.CreateAtomicCmpXchg(record, i32(0), i32(1), llvm::Align(4), AtomicOrdering::Monotonic, AtomicOrdering::Monotonic);
  b_.CreateCondBr(b_.CreateExtractValue(claimed, 1), fill, out);
  b_.SetInsertPoint(fill);
  const auto put = [&](std::size_t offset, Value* v) {
    b_.CreateAlignedStore(v, b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), record, offset), llvm::Align(v->getType() == wide ? 8 : 4));
  };
  put(offsetof(FaultRecord, kind), i32(1));
  put(offsetof(FaultRecord, site), f->getArg(1));
  put(offsetof(FaultRecord, dimension), f->getArg(2));
  put(offsetof(FaultRecord, index), f->getArg(3));
  put(offsetof(FaultRecord, extent), f->getArg(4));
  for (unsigned axis = 0; axis < 3; ++axis) {
    put(offsetof(FaultRecord, thread) + 4 * axis, special_register(Intrinsic::nvvm_read_ptx_sreg_tid_x, axis));
    put(offsetof(FaultRecord, block) + 4 * axis, special_register(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, axis));
  }
  // The host reads the record while the kernel may still run: state 2 is seen only after everything above.
  b_.CreateAlignedStore(i32(2), record, llvm::Align(4))->setAtomic(AtomicOrdering::Release);
  b_.CreateBr(out);
  b_.SetInsertPoint(out);
  b_.CreateRetVoid();
  return f;
}

}  // namespace kiln::codegen::nvptx
