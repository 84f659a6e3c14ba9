// Atomics. Active lanes act one after the other in ascending order. A block runs on one thread, so its shared memory needs no atomic
// instructions.
#include "host/emitter.h"
#include "kiln/ir/eval.h"

namespace kiln::codegen::host {

using ir::Opcode;
using llvm::Value;

namespace {

// The combine that several lanes' operands may be merged with before one update, where nobody looks at the old values. Sub merges by
// adding.
bool merges(Opcode code, ir::Type type) {
  if (!ir::is_integer(type)) return false;
  switch (code) {
    case Opcode::AtomicAdd:
    case Opcode::AtomicSub:
    case Opcode::AtomicMin:
    case Opcode::AtomicMax:
    case Opcode::AtomicAnd:
    case Opcode::AtomicOr:
    case Opcode::AtomicXor: return true;
    default: return false;
  }
}

ir::Combine merged_by(Opcode code) {
  switch (code) {
    case Opcode::AtomicMin: return ir::Combine::Min;
    case Opcode::AtomicMax: return ir::Combine::Max;
    case Opcode::AtomicAnd: return ir::Combine::And;
    case Opcode::AtomicOr: return ir::Combine::Or;
    case Opcode::AtomicXor: return ir::Combine::Xor;
    default: return ir::Combine::Add;
  }
}

}  // namespace

// f32 additions in global memory flush subnormal numbers to a zero of their sign, as the GPU's do.
Value* Emitter::flush_subnormal(Value* v) {
  Value* magnitude = b_.CreateIntrinsic(llvm::Intrinsic::fabs, {v->getType()}, {v});
  Value* small = b_.CreateFCmpOLT(magnitude, llvm::ConstantFP::get(v->getType(), 0x1p-126));
  Value* zero = b_.CreateIntrinsic(llvm::Intrinsic::copysign, {v->getType()}, {llvm::ConstantFP::get(v->getType(), 0.0), v});
  return b_.CreateSelect(small, zero, v);
}

Value* Emitter::combine_atomic(const Access& a, Value* old, Value* operand) {
  const ir::Type t = a.mem->element;
  const auto with = [&](Opcode code) { return arith_.emit(code, t, t, {old, operand}); };
  switch (a.op->code) {
    case Opcode::AtomicAdd:
      if (t == ir::Type::F32 && a.mem->space == ir::Space::Global) {
        return flush_subnormal(b_.CreateFAdd(flush_subnormal(old), flush_subnormal(operand)));
      }
      return with(Opcode::Add);
    case Opcode::AtomicSub: return with(Opcode::Sub);
    case Opcode::AtomicMin: return with(Opcode::Min);
    case Opcode::AtomicMax: return with(Opcode::Max);
    case Opcode::AtomicAnd: return with(Opcode::And);
    case Opcode::AtomicOr: return with(Opcode::Or);
    case Opcode::AtomicXor: return with(Opcode::Xor);
    default: return operand;  // exchange
  }
}

// One lane's update; gives the old value.
Value* Emitter::atomic_step(const Access& a, Value* at, Value* operand, Value* expected) {
  const ir::Type t = a.mem->element;
  llvm::Type* type = element_type(*a.mem);
  const llvm::Align align = element_align(*a.mem);
  const auto order = llvm::AtomicOrdering::Monotonic;
  if (a.mem->space != ir::Space::Global) {
    Value* old = note(b_.CreateAlignedLoad(type, at, align), a);
    Value* now = expected ? b_.CreateSelect(b_.CreateICmpEQ(old, expected), operand, old) : combine_atomic(a, old, operand);
    note(b_.CreateAlignedStore(now, at, align), a);
    return old;
  }
  if (expected) return b_.CreateExtractValue(b_.CreateAtomicCmpXchg(at, expected, operand, align, order, order), 0);
  using Rmw = llvm::AtomicRMWInst;
  const auto native = [&](Rmw::BinOp op) { return b_.CreateAtomicRMW(op, at, operand, align, order); };
  if (a.op->code == Opcode::AtomicExchange) return native(Rmw::Xchg);
  if (ir::is_integer(t)) {
    const bool is_signed = ir::is_signed(t);
    switch (a.op->code) {
      case Opcode::AtomicAdd: return native(Rmw::Add);
      case Opcode::AtomicSub: return native(Rmw::Sub);
      case Opcode::AtomicMin: return native(is_signed ? Rmw::Min : Rmw::UMin);
      case Opcode::AtomicMax: return native(is_signed ? Rmw::Max : Rmw::UMax);
      case Opcode::AtomicAnd: return native(Rmw::And);
      case Opcode::AtomicOr: return native(Rmw::Or);
      default: return native(Rmw::Xor);
    }
  }
  // Floats: compare and exchange the bits until nobody came between.
  llvm::Type* word = b_.getIntNTy(ir::bit_width(t));
  llvm::LoadInst* before = b_.CreateAlignedLoad(word, at, align);
  before->setAtomic(order);
  Block *entry = b_.GetInsertBlock(), *retry = block("retry"), *done = block("updated");
  branch_to(retry);
  start(retry);
  llvm::PHINode* seen = b_.CreatePHI(word, 2);
  seen->addIncoming(before, entry);
  Value* now = b_.CreateBitCast(combine_atomic(a, b_.CreateBitCast(seen, type), operand), word);
  Value* outcome = b_.CreateAtomicCmpXchg(at, seen, now, align, order, order);
  seen->addIncoming(b_.CreateExtractValue(outcome, 0), retry);
  b_.CreateCondBr(b_.CreateExtractValue(outcome, 1), done, retry);
  start(done);
  return b_.CreateBitCast(seen, type);
}

void Emitter::emit_atomic(ir::OpId id, Mask m) {
  const Access a = access(id);
  const ir::Op& op = *a.op;
  if (a.mem->space == ir::Space::Local) unsupported(id, "an atomic on local memory has no meaning");
  llvm::Type* type = element_type(*a.mem);
  const bool cas = op.code == Opcode::AtomicCas, wanted = used_[id] != 0;
  const ir::ValueId what = op.operands[a.rank + (cas ? 1 : 0)];
  Block* end = block("atomics.done");
  llvm::AllocaInst* results = nullptr;
  if (wanted) {
    results = variable(lanes_of(type), "old");
    b_.CreateStore(llvm::Constant::getNullValue(lanes_of(type)), results);
  }
  Mask inside = m;
  if (a.checked && a.uniform) {
    Block *good = block("atomics"), *bad = block("out.of.range");
    b_.CreateCondBr(inside_uniform(a), good, bad);
    start(bad);
    report(a, first_lane(m));
    branch_to(end);
    start(good);
  } else {
    inside = checked_lanes(a, m);
  }
  Value* base = memory_base(op.index);
  if (a.uniform && !wanted && merges(op.code, a.mem->element)) {
    const ir::Combine how = merged_by(op.code);
    Value* each = vector(what);
    Value* neutral = constant(each->getType(), a.mem->element, ir::identity(how, a.mem->element));
    Value* x = m.full() ? each : b_.CreateSelect(m.lanes, each, neutral);
    for (unsigned n = kLanes / 2; n > 0; n /= 2) {
      std::vector<int> low, high;
      for (unsigned l = 0; l < n; ++l) low.push_back(static_cast<int>(l)), high.push_back(static_cast<int>(l + n));
      x = combine(how, a.mem->element, b_.CreateShuffleVector(x, low), b_.CreateShuffleVector(x, high));
    }
    atomic_step(a, b_.CreateGEP(type, base, uniform_index(a)), b_.CreateExtractElement(x, std::uint64_t{0}), nullptr);
    branch_to(end);
    start(end);
    return;
  }
  begin_scratch();
  const auto array = [&](ir::ValueId v) { return shapes_[v].uniform() ? nullptr : lanes_in_memory(vector(v)); };
  llvm::AllocaInst* operands = array(what);
  llvm::AllocaInst* expected = cas ? array(op.operands[a.rank]) : nullptr;
  // Coordinates that vary are looked up lane by lane, each in its own width.
  Value* same_place = a.uniform ? b_.CreateGEP(type, base, uniform_index(a)) : nullptr;
  llvm::AllocaInst* coordinate[ir::kMaxRank] = {};
  for (unsigned d = 0; d < a.rank; ++d) {
    if (!shapes_[op.operands[d]].uniform()) coordinate[d] = lanes_in_memory(vector(op.operands[d]));
  }
  Value* set = bits(inside);
  Block *entry = b_.GetInsertBlock(), *head = block("atomic");
  if (inside.full()) {
    branch_to(head);
  } else {
    b_.CreateCondBr(b_.CreateICmpNE(set, b_.getInt32(0)), head, end);
  }
  start(head);
  llvm::PHINode* left = b_.CreatePHI(b_.getInt32Ty(), 2);
  left->addIncoming(set, entry);
  Value* lane = b_.CreateZExt(first_lane_of(b_, left), b_.getInt64Ty());
  const auto element = [&](llvm::AllocaInst* from, llvm::Type* t) { return b_.CreateLoad(t, b_.CreateGEP(t, from, lane)); };
  Value* at = same_place;
  if (!at) {
    Value* index = nullptr;
    for (unsigned d = 0; d < a.rank; ++d) {
      const ir::Type t = k_.op(op.operands[d]).type;
      Value* i = nullptr;
      if (coordinate[d]) {
        i = element(coordinate[d], lane_type(c_, t));
        i = ir::is_signed(t) ? b_.CreateSExtOrTrunc(i, b_.getInt64Ty()) : b_.CreateZExtOrTrunc(i, b_.getInt64Ty());
      } else {
        i = index64(op.operands[d]);
      }
      i = b_.CreateMul(i, memory_[op.index].pitch[d]);
      index = index ? b_.CreateAdd(index, i) : i;
    }
    at = b_.CreateGEP(type, base, index);
  }
  Value* operand = operands ? element(operands, type) : scalar(what);
  Value* compared = !cas ? nullptr : expected ? element(expected, type) : scalar(op.operands[a.rank]);
  Value* old = atomic_step(a, at, operand, compared);
  if (wanted) b_.CreateStore(old, b_.CreateGEP(type, results, lane));
  Value* next = b_.CreateAnd(left, b_.CreateSub(left, b_.getInt32(1)));
  Block* again = block("atomic.next");
  b_.CreateCondBr(b_.CreateICmpNE(next, b_.getInt32(0)), again, end);
  start(again);
  left->addIncoming(next, again);
  loop_back(head);
  start(end);
  if (wanted) define(id, b_.CreateLoad(lanes_of(type), results), m);
}

}  // namespace kiln::codegen::host
