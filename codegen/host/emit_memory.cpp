// Loads and stores. Lanes next to each other in memory are a plain vector access, one address for all is a scalar one, the rest is gathered
// and scattered.
#include <llvm/IR/MDBuilder.h>

#include "host/emitter.h"

namespace kiln::codegen::host {

using ir::Opcode;
using llvm::Value;

namespace {

std::uint64_t plain_max(ir::Type t) { return ir::is_signed(t) ? ir::value_mask(t) >> 1 : ir::value_mask(t); }

}  // namespace

// --- what an access looks like --------------------------------------------------------------------------------------------

Emitter::Access Emitter::access(ir::OpId id) {
  Access a;
  a.id = id;
  a.op = &k_.op(id);
  a.mem = &k_.mems[a.op->index];
  a.rank = a.mem->rank;
  a.checked = a.op->bounds == ir::Bounds::Checked;
  a.uniform = true;
  a.rows = a.mem->space != ir::Space::Local;
  for (unsigned d = 0; d < a.rank; ++d) {
    const Shape& s = shapes_[a.op->operands[d]];
    a.uniform &= s.uniform();
    if (s.uniform()) continue;
    const bool last = d + 1 == a.rank;
    const bool next_to_each_other = s.affine() && (last ? s.column == 1 || s.column == 0 : s.column == 0) && s.row >= 0;
    a.rows &= next_to_each_other;
  }
  // A column step of 0 in all coordinates is one element a row: left to the general way unless lanes share rows.
  if (a.uniform) a.rows = false;
  return a;
}

llvm::Type* Emitter::element_type(const ir::Mem& mem) const {
  return ir::is_bool(mem.element) ? llvm::Type::getInt8Ty(c_) : lane_type(c_, mem.element);
}

Value* Emitter::from_memory(const ir::Mem& mem, Value* v) {
  return ir::is_bool(mem.element) ? b_.CreateICmpNE(v, llvm::Constant::getNullValue(v->getType())) : v;
}

Value* Emitter::to_memory_form(const ir::Mem& mem, Value* v) {
  if (!ir::is_bool(mem.element)) return v;
  llvm::Type* byte = b_.getInt8Ty();
  return b_.CreateZExt(v, v->getType()->isVectorTy() ? static_cast<llvm::Type*>(lanes_of(byte)) : byte);
}

Value* Emitter::memory_base(std::uint32_t mem) {
  const Memory& m = memory_[mem];
  if (!m.in_context) return m.base;
  std::uint64_t bytes = kLanes * ir::byte_size(k_.mems[mem].element);
  for (unsigned d = 0; d < k_.mems[mem].rank; ++d) bytes *= k_.mems[mem].extents[d];
  return plan_ ? context_pointer(m.saved_offset, bytes, warp_) : b_.CreateConstGEP1_64(b_.getInt8Ty(), context_, m.saved_offset);
}

// --- addresses -----------------------------------------------------------------------------------------------------------------

Value* Emitter::index64(ir::ValueId v) {
  Value* i = scalar(v);
  return ir::is_signed(k_.op(v).type) ? b_.CreateSExtOrTrunc(i, b_.getInt64Ty()) : b_.CreateZExtOrTrunc(i, b_.getInt64Ty());
}

Value* Emitter::index64_lanes(ir::ValueId v) {
  Value* i = vector(v);
  llvm::Type* wide = lanes_of(b_.getInt64Ty());
  return ir::is_signed(k_.op(v).type) ? b_.CreateSExtOrTrunc(i, wide) : b_.CreateZExtOrTrunc(i, wide);
}

Value* Emitter::uniform_index(const Access& a) {
  const Memory& m = memory_[a.op->index];
  Value* sum = nullptr;
  for (unsigned d = 0; d < a.rank; ++d) {
    Value* term = b_.CreateMul(index64(a.op->operands[d]), m.pitch[d]);
    sum = sum ? b_.CreateAdd(sum, term) : term;
  }
  return sum;
}

Value* Emitter::lane_index(const Access& a) {
  const Memory& m = memory_[a.op->index];
  Value *same = nullptr, *each = nullptr;
  for (unsigned d = 0; d < a.rank; ++d) {
    const ir::ValueId v = a.op->operands[d];
    const bool uniform = shapes_[v].uniform();
    Value* pitch = m.pitch[d];
    Value* term = uniform ? b_.CreateMul(index64(v), pitch) : index64_lanes(v);
    if (!uniform) {
      const auto* known = llvm::dyn_cast<llvm::ConstantInt>(pitch);
      if (known == nullptr || !known->isOne()) term = b_.CreateMul(term, splat(pitch));
    }
    Value*& sum = uniform ? same : each;
    sum = sum ? b_.CreateAdd(sum, term) : term;
  }
  if (each == nullptr) return splat(same);
  return same ? b_.CreateAdd(each, splat(same)) : each;
}

// An index of which every active lane is known to be in range, but which may wrap at 2^32 on the way from the first lane to the last. A
// signed one that wraps is negative behind it, and a 64-bit one out of any memory before it: such lanes are not active, and the others lie
// where base + lane says.
bool Emitter::may_wrap(const Access& a, unsigned dimension) const {
  const ir::ValueId v = a.op->operands[dimension];
  const Shape& s = shapes_[v];
  const ir::Type t = k_.op(v).type;
  return !a.checked && s.affine() && !s.exact && s.row == 0 && !ir::is_signed(t) && ir::bit_width(t) < 64;
}

// The coordinate of the first lane of the first row, as a 64-bit number that the others follow upwards.
Value* Emitter::row_index(const Access& a, unsigned dimension) {
  const ir::ValueId v = a.op->operands[dimension];
  Value* i = index64(v);
  if (!may_wrap(a, dimension)) return i;
  const std::uint64_t mask = ir::value_mask(k_.op(v).type), reach = static_cast<std::uint64_t>(shapes_[v].column) * (geometry_.width - 1);
  return b_.CreateSelect(b_.CreateICmpUGT(i, b_.getInt64(mask - reach)), b_.CreateSub(i, b_.getInt64(mask + 1)), i);
}

Value* Emitter::row_pointer(const Access& a, unsigned row) {
  const Memory& m = memory_[a.op->index];
  Value* sum = nullptr;
  for (unsigned d = 0; d < a.rank; ++d) {
    Value* term = b_.CreateMul(row_index(a, d), m.pitch[d]);
    sum = sum ? b_.CreateAdd(sum, term) : term;
  }
  for (unsigned d = 0; row > 0 && d < a.rank; ++d) {
    const Shape& s = shapes_[a.op->operands[d]];
    if (s.uniform() || s.row == 0) continue;
    sum = b_.CreateAdd(sum, b_.CreateMul(b_.getInt64(static_cast<std::uint64_t>(s.row) * row), m.pitch[d]));
  }
  return b_.CreateGEP(element_type(*a.mem), memory_base(a.op->index), sum);
}

// --- bounds ---------------------------------------------------------------------------------------------------------------------

// The lowest and the highest lane of a warp bound all of them, when nothing wraps between: a scalar test for the whole warp.
Value* Emitter::rows_are_plain(const Access& a) {
  Value* plain = nullptr;
  const auto also = [&](Value* c) { plain = plain ? b_.CreateAnd(plain, c) : c; };
  for (unsigned d = 0; d < a.rank; ++d) {
    const ir::ValueId v = a.op->operands[d];
    const Shape& s = shapes_[v];
    Value* length = extent(a.op->index, d);
    Value* first = index64(v);
    if (s.uniform()) {
      if (a.checked) also(b_.CreateICmpULT(first, length));
      continue;
    }
    const std::uint64_t reach =
        static_cast<std::uint64_t>(s.column) * (geometry_.width - 1) + static_cast<std::uint64_t>(s.row) * (kLanes / geometry_.width - 1);
    const ir::Type t = k_.op(v).type;
    if (a.checked && !s.exact) {
      // base + reach must not pass the type's largest number. (64-bit bases near the top would need memory that no machine has, but they
      // may be garbage.)
      also(b_.CreateICmpULE(first, b_.getInt64(plain_max(t) - reach)));
    } else if (may_wrap(a, d)) {
      // In range are then only the lanes behind the wrap: row_index() counts from there.
      also(b_.CreateICmpULE(length, b_.getInt64(ir::value_mask(t) + 1 - kLanes)));
    } else if (!s.exact && s.row != 0) {
      also(b_.CreateICmpULE(first, b_.getInt64(plain_max(t) - reach)));
    }
    if (a.checked) {
      also(b_.CreateICmpULT(first, length));
      also(b_.CreateICmpULT(b_.CreateAdd(first, b_.getInt64(reach)), length));
    }
  }
  if (a.mem->strided && shapes_[a.op->operands[a.rank - 1]].column == 1) {
    also(b_.CreateICmpEQ(memory_[a.op->index].pitch[a.rank - 1], b_.getInt64(1)));
  }
  return plain;
}

Value* Emitter::inside_uniform(const Access& a) {
  Value* inside = nullptr;
  for (unsigned d = 0; d < a.rank; ++d) {
    Value* c = b_.CreateICmpULT(index64(a.op->operands[d]), extent(a.op->index, d));
    inside = inside ? b_.CreateAnd(inside, c) : c;
  }
  return inside;
}

Value* Emitter::inside_lanes(const Access& a, Mask m) {
  Value* inside = lanes(m);
  for (unsigned d = 0; d < a.rank; ++d) {
    const ir::ValueId v = a.op->operands[d];
    Value* length = extent(a.op->index, d);
    if (shapes_[v].uniform()) {
      inside = b_.CreateAnd(inside, splat(b_.CreateICmpULT(index64(v), length)));
      continue;
    }
    const ir::Type t = k_.op(v).type;
    if (ir::bit_width(t) == 64) {
      inside = b_.CreateAnd(inside, b_.CreateICmpULT(vector(v), splat(length)));
      continue;
    }
    // In the index's own width: against the largest index there is, 0 <= i <= min(length - 1, type's maximum); nothing is inside a length
    // of 0.
    Value* last =
        b_.CreateIntrinsic(llvm::Intrinsic::umin, {b_.getInt64Ty()}, {b_.CreateSub(length, b_.getInt64(1)), b_.getInt64(plain_max(t))});
    inside = b_.CreateAnd(inside, b_.CreateICmpULE(vector(v), splat(b_.CreateTrunc(last, lane_type(c_, t)))));
    inside = b_.CreateAnd(inside, splat(b_.CreateICmpNE(length, b_.getInt64(0))));
  }
  return inside;
}

Mask Emitter::checked_lanes(const Access& a, Mask m) {
  if (!a.checked) return m;
  Value* inside = inside_lanes(a, m);
  report_lanes(a, bits(b_.CreateAnd(lanes(m), b_.CreateNot(inside))));
  return Mask{inside};
}

void Emitter::report_lanes(const Access& a, Value* bad) {
  Block *some = block("out.of.range"), *go_on = block("checked");
  b_.CreateCondBr(b_.CreateICmpNE(bad, b_.getInt32(0)), some, go_on, llvm::MDBuilder(c_).createUnlikelyBranchWeights());
  start(some);
  report(a, first_lane_of(b_, bad));
  branch_to(go_on);
  start(go_on);
}

// The first coordinate that is out of range for that lane, and the lane's place in the grid.
void Emitter::report(const Access& a, Value* lane) {
  Value *dimension = b_.getInt32(0), *index = nullptr, *length = nullptr;
  for (unsigned d = a.rank; d-- > 0;) {
    const ir::ValueId v = a.op->operands[d];
    Value* i = nullptr;
    const Shape& s = shapes_[v];
    if (s.uniform()) {
      i = index64(v);
    } else {
      if (s.affine()) {
        llvm::Type* type = scalar(v)->getType();
        const auto times = [&](Value* n, std::int64_t stride) {
          return b_.CreateMul(b_.CreateZExtOrTrunc(n, type), llvm::ConstantInt::get(type, static_cast<std::uint64_t>(stride), true, true));
        };
        i = b_.CreateAdd(scalar(v), b_.CreateAdd(times(b_.CreateURem(lane, b_.getInt32(geometry_.width)), s.column),
                                                 times(b_.CreateUDiv(lane, b_.getInt32(geometry_.width)), s.row)));
      } else {
        i = b_.CreateExtractElement(vector(v), lane);
      }
      i = ir::is_signed(k_.op(v).type) ? b_.CreateSExtOrTrunc(i, b_.getInt64Ty()) : b_.CreateZExtOrTrunc(i, b_.getInt64Ty());
    }
    Value* n = extent(a.op->index, d);
    Value* outside = index ? b_.CreateICmpUGE(i, n) : nullptr;
    dimension = outside ? b_.CreateSelect(outside, b_.getInt32(d), dimension) : b_.getInt32(d);
    index = outside ? b_.CreateSelect(outside, i, index) : i;
    length = outside ? b_.CreateSelect(outside, n, length) : n;
  }
  call_report(a.op->site, dimension, index, length, lane);
}

// --- loads -------------------------------------------------------------------------------------------------------------------------

void Emitter::emit_load(ir::OpId id, Mask m) {
  const Access a = access(id);
  if (a.uniform) return define(id, load_uniform(a, m), m);
  if (!a.rows) return define(id, load_each(a, m), m);
  Value* plain = rows_are_plain(a);
  if (plain == nullptr) return define(id, load_rows(a, m), m);
  Block *fast = block("load.rows"), *slow = block("load.each"), *end = block("loaded");
  b_.CreateCondBr(plain, fast, slow, llvm::MDBuilder(c_).createLikelyBranchWeights());
  start(fast);
  Value* from_rows = load_rows(a, m);
  Block* fast_end = b_.GetInsertBlock();
  branch_to(end);
  start(slow);
  Value* from_each = from_memory(*a.mem, rows_lane_by_lane(a, m, nullptr));
  Block* slow_end = b_.GetInsertBlock();
  branch_to(end);
  start(end);
  llvm::PHINode* v = b_.CreatePHI(from_rows->getType(), 2);
  v->addIncoming(from_rows, fast_end);
  v->addIncoming(from_each, slow_end);
  define(id, v, m);
}

// One element, or of Local memory one row of lanes.
Value* Emitter::load_uniform(const Access& a, Mask m) {
  const bool local = a.mem->space == ir::Space::Local;
  llvm::Type* type = local ? static_cast<llvm::Type*>(lanes_of(element_type(*a.mem))) : element_type(*a.mem);
  const auto load = [&]() -> Value* {
    Value* index = uniform_index(a);
    if (local) index = b_.CreateShl(index, 5);
    Value* at = b_.CreateGEP(element_type(*a.mem), memory_base(a.op->index), index);
    Value* v = note(b_.CreateAlignedLoad(type, at, element_align(*a.mem)), a);
    // Lanes that never wrote hold nothing yet; they must hold one and the same anything.
    return from_memory(*a.mem, local ? b_.CreateFreeze(v) : v);
  };
  if (!a.checked) return load();
  Block *good = block("load"), *bad = block("out.of.range"), *end = block("loaded");
  b_.CreateCondBr(inside_uniform(a), good, bad);
  start(good);
  Value* v = load();
  branch_to(end);
  start(bad);
  report(a, first_lane(m));
  branch_to(end);
  start(end);
  llvm::PHINode* r = b_.CreatePHI(v->getType(), 2);
  r->addIncoming(v, good);
  r->addIncoming(llvm::Constant::getNullValue(v->getType()), bad);
  return r;
}

Value* Emitter::load_rows(const Access& a, Mask m) {
  llvm::Type* element = element_type(*a.mem);
  const unsigned width = geometry_.width, rows = kLanes / width;
  const bool across = shapes_[a.op->operands[a.rank - 1]].column == 1;
  // Behind rows_are_plain() nothing is left to check, so a masked access is one of an access that is not.
  if (!m.full() && !(across && has_masked_access(a))) {
    Access plain = a;
    plain.checked = false;
    return from_memory(*a.mem, rows_lane_by_lane(plain, m, nullptr));
  }
  if (!across) {  // one element a row
    Value* packed = llvm::Constant::getNullValue(llvm::FixedVectorType::get(element, rows));
    for (unsigned r = 0; r < rows; ++r)
      packed = b_.CreateInsertElement(packed, note(b_.CreateAlignedLoad(element, row_pointer(a, r), element_align(*a.mem)), a), r);
    std::vector<int> pick;
    for (unsigned l = 0; l < kLanes; ++l) pick.push_back(static_cast<int>(l / width));
    return from_memory(*a.mem, b_.CreateShuffleVector(packed, pick));
  }
  llvm::Type* row_type = llvm::FixedVectorType::get(element, width);
  std::vector<Value*> parts;
  for (unsigned r = 0; r < rows; ++r) {
    Value* at = row_pointer(a, r);
    if (m.full()) {
      parts.push_back(note(b_.CreateAlignedLoad(row_type, at, element_align(*a.mem)), a));
    } else {
      std::vector<int> pick;
      for (unsigned c = 0; c < width; ++c) pick.push_back(static_cast<int>(r * width + c));
      Value* part = rows == 1 ? m.lanes : b_.CreateShuffleVector(m.lanes, pick);
      parts.push_back(note(b_.CreateMaskedLoad(row_type, at, element_align(*a.mem), part, llvm::Constant::getNullValue(row_type)), a));
    }
  }
  while (parts.size() > 1) {
    std::vector<Value*> wider;
    for (std::size_t i = 0; i < parts.size(); i += 2) {
      const unsigned n = llvm::cast<llvm::FixedVectorType>(parts[i]->getType())->getNumElements();
      std::vector<int> both;
      for (unsigned c = 0; c < 2 * n; ++c) both.push_back(static_cast<int>(c));
      wider.push_back(b_.CreateShuffleVector(parts[i], parts[i + 1], both));
    }
    parts = std::move(wider);
  }
  return from_memory(*a.mem, parts[0]);
}

Value* Emitter::load_each(const Access& a, Mask m) {
  const Mask inside = checked_lanes(a, m);
  Value* index = lane_index(a);
  if (a.mem->space == ir::Space::Local)
    index = b_.CreateAdd(b_.CreateShl(index, llvm::ConstantInt::get(index->getType(), 5)), b_.CreateZExt(lane_numbers(), index->getType()));
  llvm::Type* type = lanes_of(element_type(*a.mem));
  // Local memory stays visible to LLVM, which may keep it in registers.
  // (Local memory stays visible to LLVM, which may keep it in registers.)
  if (!level_.fma && a.mem->space != ir::Space::Local) return from_memory(*a.mem, each_lane_by_lane(a, inside, index, nullptr));
  Value* at = b_.CreateGEP(element_type(*a.mem), memory_base(a.op->index), index);
  Value* v = note(b_.CreateMaskedGather(type, at, element_align(*a.mem), lanes(inside), llvm::Constant::getNullValue(type)), a);
  if (a.mem->space == ir::Space::Local) v = b_.CreateFreeze(v);
  return from_memory(*a.mem, v);
}

// --- stores ------------------------------------------------------------------------------------------------------------------------

void Emitter::emit_store(ir::OpId id, Mask m) {
  const Access a = access(id);
  if (a.uniform) return store_uniform(a, m);
  if (!a.rows) return store_each(a, m);
  Value* plain = rows_are_plain(a);
  if (plain == nullptr) return store_rows(a, m);
  Block *fast = block("store.rows"), *slow = block("store.each"), *end = block("stored");
  b_.CreateCondBr(plain, fast, slow, llvm::MDBuilder(c_).createLikelyBranchWeights());
  start(fast);
  store_rows(a, m);
  branch_to(end);
  start(slow);
  rows_lane_by_lane(a, m, to_memory_form(*a.mem, stored(a)));
  branch_to(end);
  start(end);
}

// All lanes write one element: the last of them wins. Of Local memory: each its own.
void Emitter::store_uniform(const Access& a, Mask m) {
  Block* end = nullptr;
  if (a.checked) {
    Block *good = block("store"), *bad = block("out.of.range");
    end = block("stored");
    b_.CreateCondBr(inside_uniform(a), good, bad);
    start(bad);
    report(a, first_lane(m));
    branch_to(end);
    start(good);
  }
  const ir::ValueId what = a.op->operands[a.rank];
  Value* index = uniform_index(a);
  if (a.mem->space == ir::Space::Local) {
    Value* at = b_.CreateGEP(element_type(*a.mem), memory_base(a.op->index), b_.CreateShl(index, 5));
    Value* v = to_memory_form(*a.mem, vector(what));
    if (!m.full()) v = b_.CreateSelect(m.lanes, v, b_.CreateFreeze(note(b_.CreateAlignedLoad(v->getType(), at, element_align(*a.mem)), a)));
    note(b_.CreateAlignedStore(v, at, element_align(*a.mem)), a);
  } else {
    Value* at = b_.CreateGEP(element_type(*a.mem), memory_base(a.op->index), index);
    Value* v = shapes_[what].uniform() ? scalar(what) : b_.CreateExtractElement(vector(what), last_lane(m));
    note(b_.CreateAlignedStore(to_memory_form(*a.mem, v), at, element_align(*a.mem)), a);
  }
  if (!end) return;
  branch_to(end);
  start(end);
}

bool Emitter::has_masked_access(const Access& a) const { return level_.avx512 || (level_.fma && ir::byte_size(a.mem->element) >= 4); }

void Emitter::store_rows(const Access& a, Mask m) {
  const unsigned width = geometry_.width, rows = kLanes / width;
  Value* v = to_memory_form(*a.mem, stored(a));
  if (shapes_[a.op->operands[a.rank - 1]].column != 1 || (!m.full() && !has_masked_access(a))) {
    Access plain = a;
    plain.checked = false;
    rows_lane_by_lane(plain, m, v);
    return;
  }
  for (unsigned r = 0; r < rows; ++r) {
    std::vector<int> pick;
    for (unsigned c = 0; c < width; ++c) pick.push_back(static_cast<int>(r * width + c));
    Value* part = rows == 1 ? v : b_.CreateShuffleVector(v, pick);
    Value* at = row_pointer(a, r);
    if (m.full()) {
      note(b_.CreateAlignedStore(part, at, element_align(*a.mem)), a);
    } else {
      note(b_.CreateMaskedStore(part, at, element_align(*a.mem), rows == 1 ? m.lanes : b_.CreateShuffleVector(m.lanes, pick)), a);
    }
  }
}

void Emitter::store_each(const Access& a, Mask m) {
  const Mask inside = checked_lanes(a, m);
  Value* index = lane_index(a);
  if (a.mem->space == ir::Space::Local)
    index = b_.CreateAdd(b_.CreateShl(index, llvm::ConstantInt::get(index->getType(), 5)), b_.CreateZExt(lane_numbers(), index->getType()));
  Value* v = to_memory_form(*a.mem, stored(a));
  if (!level_.avx512) {
    each_lane_by_lane(a, inside, index, v);
    return;
  }
  Value* at = b_.CreateGEP(element_type(*a.mem), memory_base(a.op->index), index);
  note(b_.CreateMaskedScatter(v, at, element_align(*a.mem), lanes(inside)), a);
}

}  // namespace kiln::codegen::host
