// What a block's threads share: ids, barriers, votes over the block.
#include "arith.h"
#include "lowering.h"

namespace kiln::codegen::nvptx {

using ir::Opcode;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

static_assert(Intrinsic::nvvm_read_ptx_sreg_tid_z == Intrinsic::nvvm_read_ptx_sreg_tid_x + 2 &&
              Intrinsic::nvvm_read_ptx_sreg_ntid_z == Intrinsic::nvvm_read_ptx_sreg_ntid_x + 2 &&
              Intrinsic::nvvm_read_ptx_sreg_ctaid_z == Intrinsic::nvvm_read_ptx_sreg_ctaid_x + 2 &&
              Intrinsic::nvvm_read_ptx_sreg_nctaid_z == Intrinsic::nvvm_read_ptx_sreg_nctaid_x + 2);

Value* Lowering::special_register(llvm::Intrinsic::ID x, unsigned axis) { return call(x + axis, {}); }

Value* Lowering::block_dim(unsigned axis) {
  return block_size_[0] != 0 ? i32(block_size_[axis]) : special_register(Intrinsic::nvvm_read_ptx_sreg_ntid_x, axis);
}

Value* Lowering::thread_id(unsigned axis) {
  if (block_size_[0] == 0) return special_register(Intrinsic::nvvm_read_ptx_sreg_tid_x, axis);
  if (block_size_[axis] == 1) return i32(0);
  Value* const id = special_register(Intrinsic::nvvm_read_ptx_sreg_tid_x, axis);
  llvm::cast<llvm::CallInst>(id)->addRangeRetAttr(llvm::ConstantRange(llvm::APInt(32, 0), llvm::APInt(32, block_size_[axis])));
  return id;
}

Value* Lowering::linear_thread() {
  Value* const plane = b_.CreateAdd(thread_id(1), b_.CreateMul(thread_id(2), block_dim(1)));
  return b_.CreateAdd(thread_id(0), b_.CreateMul(plane, block_dim(0)));
}

// The aligned form promises that a warp's threads arrive together. Threads that have returned do not arrive: after a return that some lanes
// of a warp take alone, the other form.
void Lowering::emit_barrier() {
  call(lanes_returned_ ? Intrinsic::nvvm_barrier_cta_sync_all : Intrinsic::nvvm_barrier_cta_sync_aligned_all, {i32(0)});
}

Value* Lowering::emit_block_vote(const ir::Op& op) {
  const bool aligned = !lanes_returned_;
  llvm::Intrinsic::ID id = aligned ? Intrinsic::nvvm_barrier_cta_red_popc_aligned_all : Intrinsic::nvvm_barrier_cta_red_popc_all;
  if (op.code == Opcode::BarrierAny) id = aligned ? Intrinsic::nvvm_barrier_cta_red_or_aligned_all : Intrinsic::nvvm_barrier_cta_red_or_all;
  if (op.code == Opcode::BarrierAll)
    id = aligned ? Intrinsic::nvvm_barrier_cta_red_and_aligned_all : Intrinsic::nvvm_barrier_cta_red_and_all;
  return call(id, {i32(0), value(op.operands[0])});
}

// One lane of each warp offers its value in a word of shared memory, atomically, so that warps may do it at once; some warp's is the last.
Value* Lowering::emit_block_uniform(const ir::Op& op) {
  Value* const v = value(op.operands[0]);
  if (facts_.uniformity.value[op.operands[0]] <= ir::Level::Block) {
    emit_barrier();
    return v;
  }
  if (uniform_scratch_ == nullptr) {
    uniform_scratch_ =
        new llvm::GlobalVariable(m_, b_.getInt64Ty(), false, llvm::GlobalValue::InternalLinkage, llvm::UndefValue::get(b_.getInt64Ty()),
                                 "$shared_uniform", nullptr, llvm::GlobalValue::NotThreadLocal, 3);
    uniform_scratch_->setAlignment(llvm::Align(8));
    shared_bytes_ = (shared_bytes_ + 7) / 8 * 8 + 8;
  }
  Value* const stored = to_memory(b_, op.type, v);
  const unsigned width = std::max(32u, ir::bit_width(op.type));
  llvm::Type* const word = b_.getIntNTy(width);
  Value* const bits = b_.CreateZExt(b_.CreateBitCast(stored, b_.getIntNTy(8 * ir::byte_size(op.type))), word);
  Value* const first = trailing_zeros(b_, active());
  llvm::BasicBlock* const offer = block("offer");
  llvm::BasicBlock* const wait = block("wait");
  const llvm::Align align(width / 8);
  b_.CreateCondBr(b_.CreateICmpEQ(lane(), first), offer, wait);
  b_.SetInsertPoint(offer);
  b_.CreateAlignedStore(bits, uniform_scratch_, align)->setAtomic(llvm::AtomicOrdering::Monotonic, c_.getOrInsertSyncScopeID("block"));
  b_.CreateBr(wait);
  b_.SetInsertPoint(wait);
  emit_barrier();
  Value* const chosen = b_.CreateAlignedLoad(word, uniform_scratch_, align);
  emit_barrier();  // before the word is written again
  Value* const narrow = b_.CreateTrunc(chosen, b_.getIntNTy(8 * ir::byte_size(op.type)));
  return from_memory(b_, op.type, b_.CreateBitCast(narrow, memory_type(c_, op.type)));
}

}  // namespace kiln::codegen::nvptx
