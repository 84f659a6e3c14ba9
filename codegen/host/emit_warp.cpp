// Warp operations: over the lanes active at that point.
#include "host/emitter.h"
#include "kiln/ir/eval.h"

namespace kiln::codegen::host {

using ir::Opcode;
using llvm::Value;

// Lane l gets lane sources[l] of `v`. Sources are below 32.
Value* Emitter::permute(Value* v, Value* sources) {
  if (auto* known = llvm::dyn_cast<llvm::Constant>(sources)) {
    std::vector<int> pick;
    for (unsigned l = 0; l < kLanes; ++l)
      pick.push_back(static_cast<int>(llvm::cast<llvm::ConstantInt>(known->getAggregateElement(l))->getZExtValue()));
    return b_.CreateShuffleVector(v, pick);
  }
  llvm::Type* lane = v->getType()->getScalarType();
  if (lane->isIntegerTy(1)) return b_.CreateTrunc(b_.CreateLShr(splat(bits(v)), sources), v->getType());
  llvm::AllocaInst* table = variable(v->getType(), "lanes");
  b_.CreateStore(v, table);
  const llvm::Align align(lane->getPrimitiveSizeInBits() / 8);
  return b_.CreateMaskedGather(v->getType(), b_.CreateGEP(lane, table, b_.CreateZExt(sources, lanes_of(b_.getInt64Ty()))), align,
                               all_lanes(), llvm::Constant::getNullValue(v->getType()));
}

Value* Emitter::shift_lanes(Value* v, unsigned by, Value* fill) {
  std::vector<int> pick;
  for (unsigned l = 0; l < kLanes; ++l) pick.push_back(static_cast<int>(l < by ? l : kLanes + l - by));
  return b_.CreateShuffleVector(fill, v, pick);
}

void Emitter::emit_shuffle(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const ir::ValueId what = op.operands[0];
  if (shapes_[id].uniform()) return define(id, scalar(what), m);  // every lane holds the same
  Value* v = vector(what);
  Value* own = lane_numbers();
  Value* distance = vector(op.operands[1]);
  llvm::Type* type = distance->getType();
  const auto number = [&](std::uint64_t n) { return llvm::ConstantInt::get(type, n); };
  Value *source = nullptr, *valid = nullptr;
  switch (op.code) {
    case Opcode::ShuffleIdx: source = distance; break;
    case Opcode::ShuffleUp:
      source = b_.CreateSub(own, distance);
      valid = b_.CreateICmpULE(distance, own);
      break;
    case Opcode::ShuffleDown:
      source = b_.CreateAdd(own, distance);
      valid = b_.CreateICmpULE(distance, b_.CreateSub(number(kLanes - 1), own));
      break;
    default: source = b_.CreateXor(own, distance); valid = b_.CreateICmpULT(distance, number(kLanes));
  }
  source = b_.CreateAnd(source, number(kLanes - 1));
  if (valid) source = b_.CreateSelect(valid, source, own);
  Value* moved = permute(v, source);
  if (!m.full()) moved = b_.CreateSelect(permute(m.lanes, source), moved, v);
  define(id, moved, m);
}

void Emitter::emit_vote(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const ir::ValueId c = op.operands[0];
  if (shapes_[c].uniform()) {
    Value* v = scalar(c);
    return define(id, op.code == Opcode::Ballot ? b_.CreateSelect(v, bits(m), b_.getInt32(0)) : v, m);
  }
  Value* said = bits(m.full() ? vector(c) : b_.CreateAnd(m.lanes, vector(c)));
  if (op.code == Opcode::VoteAny) said = b_.CreateICmpNE(said, b_.getInt32(0));
  if (op.code == Opcode::VoteAll) said = b_.CreateICmpEQ(said, bits(m));
  define(id, said, m);
}

Value* Emitter::combine(ir::Combine how, ir::Type type, Value* x, Value* y) {
  static constexpr Opcode kOf[] = {Opcode::Add, Opcode::Mul, Opcode::Min, Opcode::Max, Opcode::And, Opcode::Or, Opcode::Xor};
  const Opcode code = kOf[static_cast<int>(how)];
  if (!ir::is_half(type)) return arith_.emit(code, type, type, {x, y});
  const auto wide = [&](Value* v) { return arith_.emit(Opcode::Cast, ir::Type::F32, type, {v}); };
  Value *a = wide(x), *b = wide(y);
  return arith_.emit(Opcode::Cast, type, ir::Type::F32, {arith_.emit(code, ir::Type::F32, ir::Type::F32, {a, b})});
}

void Emitter::emit_combine(ir::OpId id, Mask m) {
  const ir::Op& op = k_.op(id);
  const auto how = static_cast<ir::Combine>(op.attr);
  Value* each = vector(op.operands[0]);
  const std::uint64_t neutral_bits = ir::identity(how, op.type);
  Value* neutral = constant(each->getType(), op.type, neutral_bits);
  Value* x = m.full() ? each : b_.CreateSelect(m.lanes, each, neutral);
  if (ir::is_bool(op.type)) {  // in one word
    Value* word = bits(x);
    const auto step = [&](Value* a, Value* b) {
      return how == ir::Combine::And ? b_.CreateAnd(a, b) : how == ir::Combine::Or ? b_.CreateOr(a, b) : b_.CreateXor(a, b);
    };
    if (op.code == Opcode::WarpReduce) {
      Value* count = b_.CreateIntrinsic(llvm::Intrinsic::ctpop, {word->getType()}, {word});
      return define(id,
                    how == ir::Combine::And  ? b_.CreateICmpEQ(word, b_.getInt32(~0u))
                    : how == ir::Combine::Or ? b_.CreateICmpNE(word, b_.getInt32(0))
                                             : b_.CreateTrunc(count, b_.getInt1Ty()),
                    m);
    }
    const auto shifted = [&](Value* w, unsigned by) {
      Value* r = b_.CreateShl(w, by);
      return neutral_bits ? b_.CreateOr(r, b_.getInt32((1u << by) - 1)) : r;
    };
    for (unsigned by = 1; by < kLanes; by *= 2) word = step(shifted(word, by), word);
    if (op.code == Opcode::WarpScanExclusive) word = shifted(word, 1);
    return define(id, b_.CreateBitCast(word, x->getType()), m);
  }
  if (op.code == Opcode::WarpReduce) {
    // The xor butterfly 16, 8, 4, 2, 1: lane 0's tree, and every lane's, since each step is symmetric.
    for (unsigned n = kLanes / 2; n > 0; n /= 2) {
      std::vector<int> low, high;
      for (unsigned l = 0; l < n; ++l) low.push_back(static_cast<int>(l)), high.push_back(static_cast<int>(l + n));
      x = combine(how, op.type, b_.CreateShuffleVector(x, low), b_.CreateShuffleVector(x, high));
    }
    return define(id, b_.CreateExtractElement(x, std::uint64_t{0}), m);
  }
  for (unsigned by = 1; by < kLanes; by *= 2) x = combine(how, op.type, shift_lanes(x, by, neutral), x);
  if (op.code == Opcode::WarpScanExclusive) x = shift_lanes(x, 1, neutral);
  define(id, x, m);
}

}  // namespace kiln::codegen::host
