// Addresses, loads, stores, atomics, and the test of checked accesses.
#include <llvm/IR/MDBuilder.h>

#include "arith.h"
#include "lowering.h"

namespace kiln::codegen::nvptx {

using ir::Form;
using ir::Opcode;
using llvm::AtomicOrdering;
using llvm::BasicBlock;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

// --- addresses --------------------------------------------------------------------------------------------------------

Value* Lowering::extent(std::uint32_t mem, unsigned dimension) {
  const ir::Mem& m = k_.mems[mem];
  if (m.space == ir::Space::Global) return buffers_[mem].extents[dimension];
  if (!m.dynamic) return b_.getInt64(m.extents[dimension]);
  Value* const bytes = call(Intrinsic::nvvm_read_ptx_sreg_dynamic_smem_size, {});
  return b_.CreateUDiv(b_.CreateZExt(bytes, b_.getInt64Ty()), b_.getInt64(ir::byte_size(m.element)));
}

Lowering::Place Lowering::place(const ir::Op& op) {
  Place p{.mem = op.index, .index = {}, .extent = {}};
  for (unsigned d = 0; d < k_.mems[op.index].rank; ++d) {
    const ir::ValueId coordinate = op.operands[d];
    p.index.push_back(b_.CreateIntCast(value(coordinate), b_.getInt64Ty(), ir::is_signed(k_.ops[coordinate].type)));
    p.extent.push_back(nullptr);
  }
  return p;
}

// Precondition: the place is inside.
Value* Lowering::address(const Place& p) {
  const ir::Mem& mem = k_.mems[p.mem];
  Value* offset = nullptr;
  for (unsigned d = 0; d < mem.rank; ++d) {
    if (mem.strided) {
      Value* const part = b_.CreateMul(p.index[d], buffers_[p.mem].strides[d]);
      offset = offset == nullptr ? part : b_.CreateAdd(offset, part);
    } else {
      offset = offset == nullptr ? p.index[d] : b_.CreateNUWAdd(b_.CreateNUWMul(offset, extent(p.mem, d)), p.index[d]);
    }
  }
  return b_.CreateInBoundsGEP(memory_type(c_, mem.element), storage_[p.mem], {offset});
}

// --- accesses ---------------------------------------------------------------------------------------------------------

Value* Lowering::emit_access(const ir::Op& op) {
  const Place p = place(op);
  return op.bounds == ir::Bounds::Proven ? access_at(op, p) : checked(op, p);
}

Value* Lowering::access_at(const ir::Op& op, const Place& p) {
  const ir::Mem& mem = k_.mems[p.mem];
  const llvm::Align align(ir::byte_size(mem.element));
  Value* const pointer = address(p);
  switch (ir::info(op.code).form) {
    case Form::Load: return from_memory(b_, mem.element, b_.CreateAlignedLoad(memory_type(c_, mem.element), pointer, align));
    case Form::Store: return b_.CreateAlignedStore(to_memory(b_, mem.element, value(op.operands.back())), pointer, align);
    default: return emit_atomic(op, pointer);
  }
}

// Each coordinate against its extent; out of range a load or atomic gives zero, a store is dropped, and the first faulting thread reports.
Value* Lowering::checked(const ir::Op& op, Place p) {
  std::vector<Value*> inside;
  Value* all = nullptr;
  for (unsigned d = 0; d < p.index.size(); ++d) {
    p.extent[d] = extent(p.mem, d);
    inside.push_back(b_.CreateICmpULT(p.index[d], p.extent[d]));
    all = all == nullptr ? inside[d] : b_.CreateAnd(all, inside[d]);
  }
  BasicBlock* const access = block("access");
  BasicBlock* const fault = block("fault");
  BasicBlock* const join = block("accessed");
  b_.CreateCondBr(all, access, fault, llvm::MDBuilder(c_).createBranchWeights(1u << 20, 1));
  b_.SetInsertPoint(fault);
  report(op, p, inside);
  b_.CreateBr(join);
  b_.SetInsertPoint(access);
  Value* const result = access_at(op, p);
  BasicBlock* const done = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  if (op.type == ir::Type::Void) return nullptr;
  llvm::PHINode* const v = b_.CreatePHI(type(op.type), 2);
  v->addIncoming(result, done);
  v->addIncoming(constant(c_, op.type, 0), fault);
  return v;
}

// --- atomics ----------------------------------------------------------------------------------------------------------

namespace {

llvm::AtomicRMWInst::BinOp atomic_operation(Opcode code, ir::Type type) {
  using Rmw = llvm::AtomicRMWInst;
  switch (code) {
    case Opcode::AtomicAdd: return ir::is_float(type) ? Rmw::FAdd : Rmw::Add;
    case Opcode::AtomicSub: return Rmw::Sub;
    case Opcode::AtomicMin: return ir::is_signed(type) ? Rmw::Min : Rmw::UMin;
    case Opcode::AtomicMax: return ir::is_signed(type) ? Rmw::Max : Rmw::UMax;
    case Opcode::AtomicAnd: return Rmw::And;
    case Opcode::AtomicOr: return Rmw::Or;
    case Opcode::AtomicXor: return Rmw::Xor;
    default: return Rmw::Xchg;
  }
}

bool is_float_min_max(const ir::Op& op) { return ir::is_float(op.type) && (op.code == Opcode::AtomicMin || op.code == Opcode::AtomicMax); }

}  // namespace

// Relaxed, device scope. LLVM 22 prints native read-modify-writes so whatever is asked, and honours it for compare-and-swap.
Value* Lowering::emit_atomic(const ir::Op& op, Value* pointer) {
  const llvm::Align align(ir::byte_size(op.type));
  const auto scope = c_.getOrInsertSyncScopeID("device");
  if (op.code == Opcode::AtomicCas) {
    Value* const expected = value(op.operands[op.operands.size() - 2]);
    return b_.CreateExtractValue(b_.CreateAtomicCmpXchg(pointer, expected, value(op.operands.back()), align, AtomicOrdering::Monotonic,
                                                        AtomicOrdering::Monotonic, scope),
                                 0);
  }
  if (is_float_min_max(op)) return float_atomic_min_max(op, pointer);
  Value* operand = value(op.operands.back());
  const bool moves_float = op.code == Opcode::AtomicExchange && ir::is_float(op.type);
  if (moves_float) operand = b_.CreateBitCast(operand, b_.getIntNTy(ir::bit_width(op.type)));
  Value* const old = b_.CreateAtomicRMW(atomic_operation(op.code, op.type), pointer, operand, align, AtomicOrdering::Monotonic, scope);
  return moves_float ? b_.CreateBitCast(old, type(op.type)) : old;
}

// No hardware has these with our meaning of NaN and -0: a loop around compare-and-swap that stops as soon as there is nothing to change.
Value* Lowering::float_atomic_min_max(const ir::Op& op, Value* pointer) {
  const llvm::Align align(ir::byte_size(op.type));
  const auto scope = c_.getOrInsertSyncScopeID("device");
  llvm::Type* const bits = b_.getIntNTy(ir::bit_width(op.type));
  Value* const operand = value(op.operands.back());
  llvm::LoadInst* const first = b_.CreateAlignedLoad(bits, pointer, align);
  first->setAtomic(AtomicOrdering::Monotonic, scope);
  BasicBlock* const from = b_.GetInsertBlock();
  BasicBlock* const loop = block("retry");
  BasicBlock* const exchange = block("exchange");
  BasicBlock* const done = block("exchanged");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* const old = b_.CreatePHI(bits, 2);
  old->addIncoming(first, from);
  Value* const combined = emit_combine(b_, op.code == Opcode::AtomicMin ? ir::Combine::Min : ir::Combine::Max, op.type,
                                       b_.CreateBitCast(old, type(op.type)), operand);
  Value* const wanted = b_.CreateBitCast(combined, bits);
  b_.CreateCondBr(b_.CreateICmpEQ(old, wanted), done, exchange);
  b_.SetInsertPoint(exchange);
  Value* const pair = b_.CreateAtomicCmpXchg(pointer, old, wanted, align, AtomicOrdering::Monotonic, AtomicOrdering::Monotonic, scope);
  old->addIncoming(b_.CreateExtractValue(pair, 0), exchange);
  b_.CreateCondBr(b_.CreateExtractValue(pair, 1), done, loop);
  b_.SetInsertPoint(done);
  return b_.CreateBitCast(old, type(op.type));
}

// --- the fault report -------------------------------------------------------------------------------------------------

// Names the first coordinate that is out and calls the one function that writes the record.
void Lowering::report(const ir::Op& op, const Place& p, const std::vector<Value*>& inside) {
  Value* dimension = i32(static_cast<std::uint32_t>(inside.size() - 1));
  Value* index = p.index.back();
  Value* limit = p.extent.back();
  for (std::size_t d = inside.size() - 1; d-- > 0;) {
    dimension = b_.CreateSelect(inside[d], dimension, i32(static_cast<std::uint32_t>(d)));
    index = b_.CreateSelect(inside[d], index, p.index[d]);
    limit = b_.CreateSelect(inside[d], limit, p.extent[d]);
  }
  if (fault_record_ == nullptr) return;
  b_.CreateCall(fault_function(), {fault_record_, i32(op.site), dimension, index, limit})->setDoesNotThrow();
}

}  // namespace kiln::codegen::nvptx
