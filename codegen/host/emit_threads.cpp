// Where the threads of a block lie: its shape as the code has it, the loop over its warps, thread indices. What the geometry knows is a
// constant here and folds away; what a launch says is read once for all its blocks.
#include <algorithm>
#include <cstddef>

#include "host/emitter.h"

namespace kiln::codegen::host {

using llvm::Value;

namespace {

bool is(Value* v, std::uint64_t number) {
  const auto* known = llvm::dyn_cast<llvm::ConstantInt>(v);
  return known != nullptr && known->getZExtValue() == number;
}

// n / d is n * ceil(2^20 / d) >> 20 for all n and d up to 1024 that a block has (the product is off by less than 2^20 / d, and fits in 32
// bits): there is no division of vectors.
constexpr unsigned kReciprocalBits = 20;

}  // namespace

void Emitter::read_block(Value* grid) {
  for (unsigned a = 0; a < 3; ++a) {
    Value* at = b_.CreateConstGEP1_32(b_.getInt8Ty(), grid, static_cast<unsigned>(offsetof(HostGrid, block) + 4 * a));
    block_dim_[a] = geometry_.at_launch[a] ? static_cast<Value*>(b_.CreateLoad(b_.getInt32Ty(), at, "dim")) : b_.getInt32(geometry_.dim[a]);
  }
  Value* const row_threads = b_.CreateMul(block_dim_[0], block_dim_[1]);
  Value* const threads = b_.CreateMul(row_threads, block_dim_[2]);
  full_warps_ = b_.CreateLShr(threads, 5);
  tail_lanes_ = b_.CreateAnd(threads, kLanes - 1);
  warps_ = b_.CreateLShr(b_.CreateAdd(threads, b_.getInt32(kLanes - 1)), 5);
  divisor_ = {Divisor{block_dim_[0]}, Divisor{block_dim_[1]}, Divisor{row_threads}};
  if (!geometry_.at_launch[1]) return;
  for (Divisor& d : divisor_) {
    Value* const up = b_.CreateAdd(d.number, b_.getInt32((1u << kReciprocalBits) - 1));
    d.reciprocal = b_.CreateUDiv(up, d.number, "reciprocal");
  }
}

Value* Emitter::quotient(Value* n, const Divisor& by) {
  const auto like_n = [&](Value* v) { return n->getType()->isVectorTy() ? splat(v) : v; };
  if (by.reciprocal == nullptr) return b_.CreateUDiv(n, like_n(by.number));
  return b_.CreateLShr(b_.CreateMul(n, like_n(by.reciprocal)), kReciprocalBits);
}

Value* Emitter::remainder(Value* n, const Divisor& by) {
  Value* const number = n->getType()->isVectorTy() ? splat(by.number) : by.number;
  if (by.reciprocal == nullptr) return b_.CreateURem(n, number);
  return b_.CreateSub(n, b_.CreateMul(quotient(n, by), number));
}

Value* Emitter::thread(unsigned axis) {
  const Geometry& g = geometry_;
  if (g.axis[axis] == Geometry::Axis::Zero) return b_.getInt32(0);
  if (g.axis[axis] == Geometry::Axis::Column && g.width < kLanes) return b_.getInt32(0);
  Value* linear = b_.CreateShl(warp_, 5);
  if (g.axis[axis] == Geometry::Axis::Irregular) linear = b_.CreateAdd(splat(linear), lane_numbers());
  Value* const r = axis == g.order.front() ? linear : quotient(linear, divisor_[axis == 1 ? 0 : 2]);  // by the threads of the axes below
  return axis == g.order.back() ? r : remainder(r, divisor_[axis]);
}

std::array<Value*, 3> Emitter::thread_axes(llvm::IRBuilder<>& b, Value* linear, Value* x, Value* y) const {
  return {b.CreateURem(linear, x), b.CreateURem(b.CreateUDiv(linear, x), y), b.CreateUDiv(linear, b.CreateMul(x, y))};
}

void Emitter::emit_warps(const std::function<void(Mask)>& body) {
  if (is(full_warps_, 1)) {
    note_warp(b_.getInt32(0));
    body(Mask{});
  } else if (!is(full_warps_, 0)) {
    Block *before = b_.GetInsertBlock(), *head = block("warp"), *done = block("warps.done");
    if (geometry_.exact()) branch_to(head);
    else b_.CreateCondBr(b_.CreateICmpNE(full_warps_, b_.getInt32(0)), head, done);
    start(head);
    llvm::PHINode* w = b_.CreatePHI(b_.getInt32Ty(), 2);
    w->addIncoming(b_.getInt32(0), before);
    note_warp(w);
    body(Mask{});
    Value* next = b_.CreateAdd(w, b_.getInt32(1));
    Block* again = block("warp.next");
    b_.CreateCondBr(b_.CreateICmpULT(next, full_warps_), again, done);
    start(again);
    w->addIncoming(next, again);
    loop_back(head);
    start(done);
  }
  if (is(tail_lanes_, 0)) return;
  Block* const done = geometry_.exact() ? nullptr : block("partial.done");
  if (done) {
    Block* const partial = block("partial");
    b_.CreateCondBr(b_.CreateICmpNE(tail_lanes_, b_.getInt32(0)), partial, done);
    start(partial);
  }
  note_warp(full_warps_);
  body(Mask{b_.CreateICmpULT(lane_numbers(), splat(tail_lanes_))});
  if (!done) return;
  branch_to(done);
  start(done);
}

Value* Emitter::each_warp(Value* carried, const std::function<Value*(Value* warp, Value* carried)>& body) {
  if (geometry_.exact()) {
    for (std::uint32_t w = 0; w < geometry_.most_warps; ++w) carried = body(b_.getInt32(w), carried);
    return carried;
  }
  Block *before = b_.GetInsertBlock(), *head = block("each.warp"), *again = block("each.warp.next"), *done = block("each.warp.done");
  branch_to(head);
  start(head);
  llvm::PHINode* w = b_.CreatePHI(b_.getInt32Ty(), 2);
  w->addIncoming(b_.getInt32(0), before);
  llvm::PHINode* const so_far = carried ? b_.CreatePHI(carried->getType(), 2) : nullptr;
  if (so_far) so_far->addIncoming(carried, before);
  carried = body(w, so_far);
  Value* next = b_.CreateAdd(w, b_.getInt32(1));
  b_.CreateCondBr(b_.CreateICmpULT(next, warps_), again, done);
  start(again);
  w->addIncoming(next, again);
  if (so_far) so_far->addIncoming(carried, again);
  loop_back(head);
  start(done);
  return carried;
}

}  // namespace kiln::codegen::host
