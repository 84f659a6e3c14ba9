// Warp operations over the lanes that are active at this point of the structured program (DESIGN 5). Every instruction names its lanes.
#include "arith.h"
#include "lowering.h"

namespace kiln::codegen::nvptx {

using ir::Combine;
using ir::Opcode;
using llvm::BasicBlock;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr unsigned kWarp = 32, kLastLane = 31;

bool is_associative(Combine how, ir::Type t) { return !ir::is_float(t) || how == Combine::Min || how == Combine::Max; }

}  // namespace

// --- masks ------------------------------------------------------------------------------------------------------------

bool Lowering::is_full(const Value* mask) const {
  const auto* const fixed = llvm::dyn_cast<llvm::ConstantInt>(mask);
  return fixed != nullptr && fixed->isMinusOne();
}

// The last warp of a block may have fewer than 32 lanes.
Value* Lowering::initial_mask() {
  const bool known = block_size_[0] != 0;
  if (known) {
    const std::uint64_t threads = std::uint64_t{block_size_[0]} * block_size_[1] * block_size_[2];
    if (threads % kWarp == 0) return full_mask();
    if (threads < kWarp) return i32((1u << threads) - 1);
  } else if (options_.block_multiple_of_32) {
    return full_mask();
  }
  Value* const threads = b_.CreateMul(b_.CreateMul(block_dim(0), block_dim(1)), block_dim(2));
  Value* const left = b_.CreateSub(threads, b_.CreateAnd(linear_thread(), ~kLastLane));
  Value* const some = b_.CreateNot(b_.CreateShl(full_mask(), b_.CreateAnd(left, kLastLane)));
  return b_.CreateSelect(b_.CreateICmpUGE(left, i32(kWarp)), full_mask(), some);
}

Value* Lowering::active() {
  if (mask_.stale) mask_ = {ballot(mask_.lanes, b_.getTrue()), false};
  return mask_.lanes;
}

Value* Lowering::ballot(Value* mask, Value* condition) { return call(Intrinsic::nvvm_vote_ballot_sync, {mask, condition}); }

Value* Lowering::lane() { return call(Intrinsic::nvvm_read_ptx_sreg_laneid, {}); }

Value* Lowering::call(llvm::Intrinsic::ID id, std::vector<Value*> arguments) {
  return b_.CreateIntrinsic(id, llvm::ArrayRef<llvm::Type*>(), arguments);
}

// Two ways to one result, chosen at run time by whether the warp is full. All lanes of a mask agree, so the branch never splits them.
Value* Lowering::either(Value* mask, const std::function<Value*()>& when_full, const std::function<Value*()>& otherwise) {
  if (is_full(mask)) return when_full();
  if (llvm::isa<llvm::ConstantInt>(mask)) return otherwise();
  BasicBlock* const full = block("full");
  BasicBlock* const partial = block("partial");
  BasicBlock* const join = block("combined");
  b_.CreateCondBr(b_.CreateICmpEQ(mask, full_mask()), full, partial);
  b_.SetInsertPoint(full);
  Value* const x = when_full();
  BasicBlock* const from_full = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(partial);
  Value* const y = otherwise();
  BasicBlock* const from_partial = b_.GetInsertBlock();
  b_.CreateBr(join);
  b_.SetInsertPoint(join);
  llvm::PHINode* const v = b_.CreatePHI(x->getType(), 2);
  v->addIncoming(x, from_full);
  v->addIncoming(y, from_partial);
  return v;
}

// --- shuffles ---------------------------------------------------------------------------------------------------------

// The hardware moves 32 bits: a 64-bit value goes in two halves, a smaller one as a word.
Value* Lowering::shuffle_bits(llvm::Intrinsic::ID id, Value* mask, Value* v, Value* operand, unsigned clamp) {
  llvm::Type* const t = v->getType();
  const auto move = [&](Value* word) { return call(id, {mask, word, operand, i32(clamp)}); };
  if (t->isIntegerTy(1)) return b_.CreateICmpNE(move(b_.CreateZExt(v, b_.getInt32Ty())), i32(0));
  const unsigned width = static_cast<unsigned>(t->getPrimitiveSizeInBits().getFixedValue());
  Value* const bits = b_.CreateBitCast(v, b_.getIntNTy(width));
  if (width == 32) return b_.CreateBitCast(move(bits), t);
  if (width < 32) return b_.CreateBitCast(b_.CreateTrunc(move(b_.CreateZExt(bits, b_.getInt32Ty())), bits->getType()), t);
  Value* const low = move(b_.CreateTrunc(bits, b_.getInt32Ty()));
  Value* const high = move(b_.CreateTrunc(b_.CreateLShr(bits, 32), b_.getInt32Ty()));
  Value* const both = b_.CreateOr(b_.CreateZExt(low, bits->getType()), b_.CreateShl(b_.CreateZExt(high, bits->getType()), 32));
  return b_.CreateBitCast(both, t);
}

// Precondition: lane `source` (below 32) is in `mask`.
Value* Lowering::read_lane(Value* mask, Value* v, Value* source) {
  return shuffle_bits(Intrinsic::nvvm_shfl_sync_idx_i32, mask, v, source, kLastLane);
}

Value* Lowering::emit_shuffle(const ir::Op& op) {
  Value* const v = value(op.operands[0]);
  Value* const operand = value(op.operands[1]);
  Value* const mask = active();
  if (is_full(mask)) {
    if (op.code == Opcode::ShuffleIdx) return shuffle_bits(Intrinsic::nvvm_shfl_sync_idx_i32, mask, v, operand, kLastLane);
    const bool up = op.code == Opcode::ShuffleUp;
    const auto id = up                               ? Intrinsic::nvvm_shfl_sync_up_i32
                    : op.code == Opcode::ShuffleDown ? Intrinsic::nvvm_shfl_sync_down_i32
                                                     : Intrinsic::nvvm_shfl_sync_bfly_i32;
    // The instruction takes the distance mod 32.
    Value* const near = b_.CreateICmpULT(operand, i32(kWarp));
    return b_.CreateSelect(near, shuffle_bits(id, mask, v, operand, up ? 0 : kLastLane), v);
  }
  Value* const self = lane();
  Value* source = nullptr;
  Value* exists = nullptr;
  switch (op.code) {
    case Opcode::ShuffleUp:
      source = b_.CreateSub(self, operand);
      exists = b_.CreateICmpULE(operand, self);
      break;
    case Opcode::ShuffleDown:
      source = b_.CreateAdd(self, operand);
      exists = b_.CreateICmpULE(operand, b_.CreateSub(i32(kLastLane), self));
      break;
    case Opcode::ShuffleXor:
      source = b_.CreateXor(self, operand);
      exists = b_.CreateICmpULT(operand, i32(kWarp));
      break;
    default:
      source = operand;
      exists = b_.getTrue();
      break;
  }
  source = b_.CreateAnd(source, kLastLane);
  Value* const there = b_.CreateICmpNE(b_.CreateAnd(b_.CreateLShr(mask, source), 1), i32(0));
  return read_lane(mask, v, b_.CreateSelect(b_.CreateAnd(exists, there), source, self));
}

Value* Lowering::emit_vote(const ir::Op& op) {
  Value* const condition = value(op.operands[0]);
  if (op.code == Opcode::Ballot) return ballot(active(), condition);
  return call(op.code == Opcode::VoteAny ? Intrinsic::nvvm_vote_any_sync : Intrinsic::nvvm_vote_all_sync, {active(), condition});
}

// --- reductions -------------------------------------------------------------------------------------------------------

Value* Lowering::emit_reduce(const ir::Op& op) {
  const auto how = static_cast<Combine>(op.attr);
  const ir::Type t = op.type;
  Value* const v = value(op.operands[0]);
  Value* const mask = active();
  if (ir::is_bool(t)) {
    if (how == Combine::And) return call(Intrinsic::nvvm_vote_all_sync, {mask, v});
    if (how == Combine::Or) return call(Intrinsic::nvvm_vote_any_sync, {mask, v});
    return b_.CreateTrunc(b_.CreateUnaryIntrinsic(Intrinsic::ctpop, ballot(mask, v)), b_.getInt1Ty());
  }
  if (ir::is_integer(t) && ir::bit_width(t) == 32 && how != Combine::Mul && has("redux.sync", 80, op)) {
    const bool sign = ir::is_signed(t);
    const auto id = [&]() -> llvm::Intrinsic::ID {
      switch (how) {
        case Combine::Add: return Intrinsic::nvvm_redux_sync_add;
        case Combine::Min: return sign ? Intrinsic::nvvm_redux_sync_min : Intrinsic::nvvm_redux_sync_umin;
        case Combine::Max: return sign ? Intrinsic::nvvm_redux_sync_max : Intrinsic::nvvm_redux_sync_umax;
        case Combine::And: return Intrinsic::nvvm_redux_sync_and;
        case Combine::Or: return Intrinsic::nvvm_redux_sync_or;
        default: return Intrinsic::nvvm_redux_sync_xor;
      }
    }();
    return call(id, {v, mask});
  }
  return either(mask, [&] { return reduce_full(how, t, v); }, [&] { return reduce_partial(how, t, v, mask); });
}

Value* Lowering::reduce_full(Combine how, ir::Type t, Value* v) {
  for (unsigned distance = kWarp / 2; distance > 0; distance /= 2) {
    v = emit_combine(b_, how, t, v, shuffle_bits(Intrinsic::nvvm_shfl_sync_bfly_i32, full_mask(), v, i32(distance), kLastLane));
  }
  return v;
}

// The butterfly of 32 lanes, inactive ones holding the identity, evaluated by the active ones alone. Before the step of distance d, all
// lanes of one class mod 2d would hold the same value; a lane takes its partner's from any active lane of the partner's class, and a class
// without active lanes has combined nothing but identities.
Value* Lowering::reduce_partial(Combine how, ir::Type t, Value* v, Value* mask) {
  Value* const self = lane();
  return steps({v, i32(kWarp / 2), i32(1)}, [&](const std::vector<Value*>& state) -> std::vector<Value*> {
    Value* const distance = state[1];
    Value* const class_zero = state[2];  // the lanes that are 0 mod 2d
    Value* const last_of_class = b_.CreateSub(b_.CreateShl(distance, 1), i32(1));
    Value* const partner = b_.CreateAnd(b_.CreateXor(self, distance), last_of_class);
    Value* const holders = b_.CreateAnd(mask, b_.CreateShl(class_zero, partner));
    Value* const any = b_.CreateICmpNE(holders, i32(0));
    Value* const got = read_lane(mask, state[0], b_.CreateSelect(any, trailing_zeros(b_, holders), self));
    Value* const combined = emit_combine(b_, how, t, state[0], b_.CreateSelect(any, got, identity_constant(c_, how, t)));
    return {combined, b_.CreateLShr(distance, 1), b_.CreateOr(class_zero, b_.CreateShl(class_zero, distance))};
  })[0];
}

// Repeats `step` five times on `state`, as a loop that stays one: partial warps are rare, and their code should be small.
std::vector<Value*> Lowering::steps(const std::vector<Value*>& state,
                                    const std::function<std::vector<Value*>(const std::vector<Value*>&)>& step) {
  constexpr unsigned kSteps = 5;  // log2 of a warp
  BasicBlock* const from = b_.GetInsertBlock();
  BasicBlock* const loop = block("step");
  BasicBlock* const after = block("stepped");
  b_.CreateBr(loop);
  b_.SetInsertPoint(loop);
  llvm::PHINode* const count = b_.CreatePHI(b_.getInt32Ty(), 2);
  count->addIncoming(i32(0), from);
  std::vector<llvm::PHINode*> variables;
  for (Value* const v : state) {
    variables.push_back(b_.CreatePHI(v->getType(), 2));
    variables.back()->addIncoming(v, from);
  }
  const std::vector<Value*> next = step({variables.begin(), variables.end()});
  BasicBlock* const latch = b_.GetInsertBlock();
  Value* const counted = b_.CreateNUWAdd(count, i32(1));
  count->addIncoming(counted, latch);
  for (std::size_t i = 0; i < next.size(); ++i) variables[i]->addIncoming(next[i], latch);
  llvm::BranchInst* const back = b_.CreateCondBr(b_.CreateICmpULT(counted, i32(kSteps)), loop, after);
  llvm::MDNode* const no_unroll = llvm::MDNode::get(c_, llvm::MDString::get(c_, "llvm.loop.unroll.disable"));
  llvm::MDNode* const id = llvm::MDNode::getDistinct(c_, {nullptr, no_unroll});
  id->replaceOperandWith(0, id);
  back->setMetadata(llvm::LLVMContext::MD_loop, id);
  b_.SetInsertPoint(after);
  return next;
}

// --- scans ------------------------------------------------------------------------------------------------------------
// inclusive[i] is the Hillis-Steele scan over 32 lanes, inactive ones holding the identity; exclusive[i] = inclusive[i - 1], exclusive[0] =
// identity.

Value* Lowering::emit_scan(const ir::Op& op) {
  const auto how = static_cast<Combine>(op.attr);
  const ir::Type t = op.type;
  const bool exclusive = op.code == Opcode::WarpScanExclusive;
  Value* const v = value(op.operands[0]);
  Value* const mask = active();
  return either(
      mask, [&] { return scan_full(how, t, v, exclusive); },
      [&] { return is_associative(how, t) ? scan_chain(how, t, v, mask, exclusive) : scan_tree(how, t, v, mask, exclusive); });
}

Value* Lowering::scan_full(Combine how, ir::Type t, Value* v, bool exclusive) {
  Value* const self = lane();
  const auto from_below = [&](Value* x, unsigned distance) {
    return shuffle_bits(Intrinsic::nvvm_shfl_sync_up_i32, full_mask(), x, i32(distance), 0);
  };
  for (unsigned distance = 1; distance < kWarp; distance *= 2) {
    Value* const combined = emit_combine(b_, how, t, from_below(v, distance), v);
    v = b_.CreateSelect(b_.CreateICmpUGE(self, i32(distance)), combined, v);
  }
  if (!exclusive) return v;
  return b_.CreateSelect(b_.CreateICmpEQ(self, i32(0)), identity_constant(c_, how, t), from_below(v, 1));
}

// Where the order of combining cannot be seen in the bits: each lane points at the next active one below and the pointers double.
Value* Lowering::scan_chain(Combine how, ir::Type t, Value* v, Value* mask, bool exclusive) {
  Value* const self = lane();
  Value* const none = i32(kWarp);
  Value* const below = b_.CreateAnd(mask, b_.CreateNot(b_.CreateShl(full_mask(), self)));
  Value* const leading = b_.CreateIntrinsic(Intrinsic::ctlz, {b_.getInt32Ty()}, {below, b_.getFalse()});
  Value* const previous = b_.CreateSelect(b_.CreateICmpEQ(below, i32(0)), none, b_.CreateSub(i32(kLastLane), leading));
  const auto source = [&](Value* pointer) { return b_.CreateSelect(b_.CreateICmpEQ(pointer, none), self, pointer); };
  Value* const inclusive = steps({v, previous}, [&](const std::vector<Value*>& state) -> std::vector<Value*> {
    Value* const from = source(state[1]);
    Value* const combined = emit_combine(b_, how, t, read_lane(mask, state[0], from), state[0]);
    // Without a lane below, a lane reads its own "none" and keeps its value.
    return {b_.CreateSelect(b_.CreateICmpEQ(state[1], none), state[0], combined), read_lane(mask, state[1], from)};
  })[0];
  if (!exclusive) return inclusive;
  Value* const got = read_lane(mask, inclusive, source(previous));
  return b_.CreateSelect(b_.CreateICmpEQ(previous, none), identity_constant(c_, how, t), got);
}

// Float add and mul: the same tree as 32 lanes would build. The scan's result in a lane is a perfect binary tree over the 32 values
// that end there, so each lane fetches those that exist and evaluates it.
Value* Lowering::scan_tree(Combine how, ir::Type t, Value* v, Value* mask, bool exclusive) {
  Value* const self = lane();
  Value* const nothing = identity_constant(c_, how, t);
  std::vector<Value*> level;
  for (unsigned j = 0; j < kWarp; ++j) {
    const unsigned distance = exclusive ? j + 1 : j;
    if (distance == 0 || distance == kWarp) {
      level.push_back(distance == 0 ? v : nothing);
      continue;
    }
    Value* const source = b_.CreateAnd(b_.CreateSub(self, i32(distance)), kLastLane);
    Value* const there = b_.CreateICmpNE(b_.CreateAnd(b_.CreateLShr(mask, source), 1), i32(0));
    Value* const exists = b_.CreateAnd(b_.CreateICmpUGE(self, i32(distance)), there);
    level.push_back(b_.CreateSelect(exists, read_lane(mask, v, b_.CreateSelect(exists, source, self)), nothing));
  }
  while (level.size() > 1) {
    for (std::size_t j = 0; j < level.size() / 2; ++j) level[j] = emit_combine(b_, how, t, level[2 * j + 1], level[2 * j]);
    level.resize(level.size() / 2);
  }
  return level[0];
}

}  // namespace kiln::codegen::nvptx
