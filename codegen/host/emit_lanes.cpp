// Lane by lane: the ways of an access that are rarely gone, or that the CPU has no instruction for, as loops in functions of their own.
// Inline they would be most of the code and most of the time it takes to compile.
#include "host/emitter.h"

namespace kiln::codegen::host {

using llvm::Value;

namespace {

struct LaneLoop {
  llvm::BasicBlock *next, *done;
  llvm::PHINode* left;
  Value* lane;  // i64
};

// for each lane in `set`, ascending: the caller fills in the body and branches to next
LaneLoop begin_loop(llvm::IRBuilder<>& b, llvm::Function* f, Value* set) {
  llvm::LLVMContext& c = f->getContext();
  LaneLoop loop;
  llvm::BasicBlock* before = b.GetInsertBlock();
  auto* head = llvm::BasicBlock::Create(c, "lane", f);
  loop.next = llvm::BasicBlock::Create(c, "next", f);
  loop.done = llvm::BasicBlock::Create(c, "done", f);
  b.CreateCondBr(b.CreateICmpNE(set, b.getInt32(0)), head, loop.done);
  b.SetInsertPoint(loop.next);
  b.SetInsertPoint(head);
  loop.left = b.CreatePHI(b.getInt32Ty(), 2);
  loop.left->addIncoming(set, before);
  loop.lane = b.CreateZExt(first_lane_of(b, loop.left), b.getInt64Ty());
  llvm::IRBuilder<> at_next(loop.next);
  Value* rest = at_next.CreateAnd(loop.left, at_next.CreateSub(loop.left, at_next.getInt32(1)));
  loop.left->addIncoming(rest, loop.next);
  at_next.CreateCondBr(at_next.CreateICmpNE(rest, at_next.getInt32(0)), head, loop.done);
  return loop;
}

}  // namespace

// What a report says besides the access: {fault record, warp, block ids}, kept up to date by the loops over blocks and warps; and x and y
// of a block that is given at launch.
llvm::StructType* Emitter::where_type() const {
  llvm::Type* const word = llvm::Type::getInt32Ty(c_);
  std::vector<llvm::Type*> fields = {llvm::PointerType::get(c_, 0), word, word, word, word};
  if (!geometry_.exact()) fields.insert(fields.end(), {word, word});
  return llvm::StructType::get(c_, fields);
}

llvm::Function* Emitter::helper(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> parameters, bool& fresh) {
  llvm::Function* f = module_.getFunction(name);
  fresh = f == nullptr;
  if (!fresh) return f;
  f = llvm::Function::Create(llvm::FunctionType::get(result, parameters, false), llvm::Function::InternalLinkage, name, module_);
  f->addFnAttr(llvm::Attribute::NoUnwind);
  f->addFnAttr(llvm::Attribute::NoInline);
  f->addFnAttr("target-cpu", level_.cpu);
  return f;
}

// i32 f(lanes, base, first, column, pitch, wrap, sign, extent, set): lane l of `set` has the index first + column * l, wrapped to the
// index's type; an index below `extent` moves an element between lanes[l] and base[index * pitch], the others come back as bits.
llvm::Function* Emitter::stepping_helper(bool stores, unsigned bytes) {
  llvm::Type *p = b_.getPtrTy(), *i64 = b_.getInt64Ty(), *i32 = b_.getInt32Ty(), *element = b_.getIntNTy(8 * bytes);
  bool fresh = false;
  llvm::Function* f = helper((stores ? "kiln_store_step_" : "kiln_load_step_") + std::to_string(bytes), i32,
                             {p, p, i64, i64, i64, i64, i64, i64, i32}, fresh);
  if (!fresh) return f;
  llvm::IRBuilder<> b(Block::Create(c_, "entry", f));
  Block* entry = b.GetInsertBlock();
  const LaneLoop loop = begin_loop(b, f, f->getArg(8));
  Block *head = b.GetInsertBlock(), *inside = Block::Create(c_, "inside", f);
  llvm::PHINode* bad = llvm::PHINode::Create(i32, 2, "bad", loop.left->getIterator());
  bad->addIncoming(b.getInt32(0), entry);
  Value* x = b.CreateAnd(b.CreateAdd(f->getArg(2), b.CreateMul(loop.lane, f->getArg(3))), f->getArg(5));
  Value* index = b.CreateSub(b.CreateXor(x, f->getArg(6)), f->getArg(6));
  Value* mine = b.CreateShl(b.getInt32(1), b.CreateTrunc(loop.lane, i32));
  b.CreateCondBr(b.CreateICmpULT(index, f->getArg(7)), inside, loop.next);
  b.SetInsertPoint(inside);
  Value *slot = b.CreateGEP(element, f->getArg(0), loop.lane), *at = b.CreateGEP(element, f->getArg(1), b.CreateMul(index, f->getArg(4)));
  b.CreateStore(b.CreateLoad(element, stores ? slot : at), stores ? at : slot);
  b.CreateBr(loop.next);
  b.SetInsertPoint(loop.next, loop.next->begin());
  llvm::PHINode* so_far = b.CreatePHI(i32, 2);
  llvm::IRBuilder<> at_head(head->getTerminator());
  so_far->addIncoming(at_head.CreateOr(bad, mine), head);
  so_far->addIncoming(bad, inside);
  bad->addIncoming(so_far, loop.next);
  b.SetInsertPoint(loop.done);
  llvm::PHINode* all = b.CreatePHI(i32, 2);
  all->addIncoming(b.getInt32(0), entry);
  all->addIncoming(so_far, loop.next);
  b.CreateRet(all);
  return f;
}

void Emitter::declare_where() {
  bool checks = false;
  ir::walk(k_, 0, [&](ir::OpId id) { checks |= ir::is_access(k_.op(id).code) && k_.op(id).bounds == ir::Bounds::Checked; });
  if (!checks) return;
  where_ = variable(where_type(), "where");
  b_.CreateStore(fault_record_, b_.CreateStructGEP(where_type(), where_, 0));
  for (unsigned a = 0; a < 2 && !geometry_.exact(); ++a) b_.CreateStore(block_dim_[a], b_.CreateStructGEP(where_type(), where_, 5 + a));
}

void Emitter::note_block() {
  if (!where_) return;
  for (unsigned a = 0; a < 3; ++a) b_.CreateStore(block_id_[a], b_.CreateStructGEP(where_type(), where_, 2 + a));
}

void Emitter::note_warp(Value* warp) {
  warp_ = warp;
  if (where_) b_.CreateStore(warp, b_.CreateStructGEP(where_type(), where_, 1));
}

// void f(lanes, base, first, extent, set, where, site[, pitch]): as stepping_helper() does, and the first lane that is out of range is
// reported. The other lanes of a load are zero. One call is all that an access costs the kernel's own code.
llvm::Function* Emitter::checking_helper(bool stores, unsigned bytes, ir::Type index_type, std::int64_t column, bool dense) {
  llvm::Type *p = b_.getPtrTy(), *i64 = b_.getInt64Ty(), *i32 = b_.getInt32Ty(), *element = b_.getIntNTy(8 * bytes);
  std::vector<llvm::Type*> parameters = {p, p, i64, i64, i32, p, i32};
  if (!dense) parameters.push_back(i64);
  bool fresh = false;
  const std::string name = std::string(stores ? "kiln_store_" : "kiln_load_") + std::to_string(bytes) + "_" +
                           std::string(ir::name(index_type)) + "_" + std::to_string(column) + (dense ? "" : "_strided");
  llvm::Function* f = helper(name, b_.getVoidTy(), parameters, fresh);
  if (!fresh) return f;
  f->addFnAttr(llvm::Attribute::Cold);
  llvm::Function* const reporter = report_function();
  Value *array = f->getArg(0), *extent = f->getArg(3);
  llvm::IRBuilder<> b(Block::Create(c_, "entry", f));
  if (!stores) b.CreateAlignedStore(llvm::Constant::getNullValue(lanes_of(element)), array, llvm::Align(bytes));
  Block* const entry = b.GetInsertBlock();
  const LaneLoop loop = begin_loop(b, f, f->getArg(4));
  Block *head = b.GetInsertBlock(), *inside = Block::Create(c_, "inside", f), *fault = Block::Create(c_, "fault", f),
        *end = Block::Create(c_, "end", f);
  const std::uint64_t mask = ir::value_mask(index_type);
  Value* const sign = b.getInt64(ir::is_signed(index_type) && ir::bit_width(index_type) < 64 ? (mask >> 1) + 1 : 0);
  const auto index_of = [&](Value* lane) {
    Value* const x =
        b.CreateAnd(b.CreateAdd(f->getArg(2), b.CreateMul(lane, b.getInt64(static_cast<std::uint64_t>(column)))), b.getInt64(mask));
    return b.CreateSub(b.CreateXor(x, sign), sign);
  };
  llvm::PHINode* const bad = llvm::PHINode::Create(i32, 2, "bad", loop.left->getIterator());
  bad->addIncoming(b.getInt32(0), entry);
  Value* const index = index_of(loop.lane);
  Value* const with_mine = b.CreateOr(bad, b.CreateShl(b.getInt32(1), b.CreateTrunc(loop.lane, i32)));
  b.CreateCondBr(b.CreateICmpULT(index, extent), inside, loop.next);
  b.SetInsertPoint(inside);
  Value *slot = b.CreateGEP(element, array, loop.lane),
        *at = b.CreateGEP(element, f->getArg(1), dense ? index : b.CreateMul(index, f->getArg(7)));
  b.CreateAlignedStore(b.CreateAlignedLoad(element, stores ? slot : at, llvm::Align(bytes)), stores ? at : slot, llvm::Align(bytes));
  b.CreateBr(loop.next);
  b.SetInsertPoint(loop.next, loop.next->begin());
  llvm::PHINode* const so_far = b.CreatePHI(i32, 2);
  so_far->addIncoming(with_mine, head);
  so_far->addIncoming(bad, inside);
  bad->addIncoming(so_far, loop.next);
  b.SetInsertPoint(loop.done);
  llvm::PHINode* const all = b.CreatePHI(i32, 2);
  all->addIncoming(b.getInt32(0), entry);
  all->addIncoming(so_far, loop.next);
  b.CreateCondBr(b.CreateICmpNE(all, b.getInt32(0)), fault, end);
  b.SetInsertPoint(fault);
  llvm::StructType* const where = where_type();
  const auto field = [&](unsigned n) { return b.CreateLoad(where->getElementType(n), b.CreateStructGEP(where, f->getArg(5), n)); };
  Value* const lane = first_lane_of(b, all);
  std::vector<Value*> arguments = {
      field(0), f->getArg(6), b.getInt32(0), index_of(b.CreateZExt(lane, i64)), extent, b.CreateAdd(b.CreateShl(field(1), 5), lane)};
  for (unsigned n = 2; n < where->getNumElements(); ++n) arguments.push_back(field(n));
  b.CreateCall(reporter, arguments);
  b.CreateBr(end);
  b.SetInsertPoint(end);
  b.CreateRetVoid();
  return f;
}

// One row, one coordinate: what nearly all accesses are.
Value* Emitter::row_checked_lane_by_lane(const Access& a, Mask m, Value* stored) {
  llvm::Type* const type = lanes_of(element_type(*a.mem));
  const Memory& memory = memory_[a.op->index];
  const ir::ValueId v = a.op->operands[0];
  const auto* const pitch = llvm::dyn_cast<llvm::ConstantInt>(memory.pitch[0]);
  const bool dense = pitch != nullptr && pitch->isOne();
  llvm::AllocaInst* const array = stored ? lanes_in_memory(stored) : scratch_array(type);
  std::vector<Value*> arguments = {array, memory_base(a.op->index), index64(v), memory.extent[0], bits(m), where_, b_.getInt32(a.op->site)};
  if (!dense) arguments.push_back(memory.pitch[0]);
  b_.CreateCall(checking_helper(stored != nullptr, ir::byte_size(a.mem->element), k_.op(v).type, shapes_[v].column, dense), arguments);
  return stored ? nullptr : b_.CreateLoad(type, array);
}

// void f(lanes, base, indices, set): lane l moves an element between lanes[l] and base[indices[l]].
llvm::Function* Emitter::indexed_helper(bool stores, unsigned bytes) {
  llvm::Type *p = b_.getPtrTy(), *i64 = b_.getInt64Ty(), *i32 = b_.getInt32Ty(), *element = b_.getIntNTy(8 * bytes);
  bool fresh = false;
  llvm::Function* f =
      helper((stores ? "kiln_store_each_" : "kiln_load_each_") + std::to_string(bytes), b_.getVoidTy(), {p, p, p, i32}, fresh);
  if (!fresh) return f;
  llvm::IRBuilder<> b(Block::Create(c_, "entry", f));
  const LaneLoop loop = begin_loop(b, f, f->getArg(3));
  Value* index = b.CreateLoad(i64, b.CreateGEP(i64, f->getArg(2), loop.lane));
  Value *slot = b.CreateGEP(element, f->getArg(0), loop.lane), *at = b.CreateGEP(element, f->getArg(1), index);
  b.CreateStore(b.CreateLoad(element, stores ? slot : at), stores ? at : slot);
  b.CreateBr(loop.next);
  b.SetInsertPoint(loop.done);
  b.CreateRetVoid();
  return f;
}

// The slow way of an access whose lanes lie in rows: indices that wrap, lanes out of range, masks that the CPU cannot load by. Gives the
// loaded lanes, or null for a store.
Value* Emitter::rows_lane_by_lane(const Access& a, Mask m, Value* stored) {
  llvm::Type* type = lanes_of(element_type(*a.mem));
  llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
  const unsigned bytes = ir::byte_size(a.mem->element), width = geometry_.width, rows = kLanes / width;
  const Memory& memory = memory_[a.op->index];
  begin_scratch();
  if (a.checked && rows == 1 && a.rank == 1) return row_checked_lane_by_lane(a, m, stored);
  llvm::AllocaInst* array = lanes_in_memory(stored ? stored : llvm::Constant::getNullValue(type));
  llvm::Function* step = stepping_helper(stored != nullptr, bytes);
  Value *set = bits(m), *base = memory_base(a.op->index);
  Block *before = b_.GetInsertBlock(), *head = rows > 1 ? block("row") : nullptr;
  llvm::PHINode *row = nullptr, *bad = nullptr;
  if (rows > 1) {
    branch_to(head);
    start(head);
    row = b_.CreatePHI(i32, 2);
    bad = b_.CreatePHI(i32, 2);
    row->addIncoming(b_.getInt32(0), before);
    bad->addIncoming(b_.getInt32(0), before);
  }
  // Everything in the index's own type, so that it wraps as the lanes' values do.
  Value *offset = b_.getInt64(0), *inside = nullptr, *first = nullptr;
  for (unsigned d = 0; d < a.rank; ++d) {
    const ir::ValueId v = a.op->operands[d];
    const Shape& s = shapes_[v];
    Value* i = scalar(v);
    if (row && !s.uniform() && s.row != 0) {
      i = b_.CreateAdd(i, b_.CreateMul(b_.CreateZExtOrTrunc(row, i->getType()),
                                       llvm::ConstantInt::get(i->getType(), static_cast<std::uint64_t>(s.row))));
    }
    i = ir::is_signed(k_.op(v).type) ? b_.CreateSExtOrTrunc(i, i64) : b_.CreateZExtOrTrunc(i, i64);
    if (d + 1 == a.rank) {
      first = i;
    } else {
      offset = b_.CreateAdd(offset, b_.CreateMul(i, memory.pitch[d]));
      if (!a.checked) continue;
      Value* c = b_.CreateICmpULT(i, memory.extent[d]);
      inside = inside ? b_.CreateAnd(inside, c) : c;
    }
  }
  const ir::ValueId last = a.op->operands[a.rank - 1];
  const ir::Type t = k_.op(last).type;
  Value* mine = row ? b_.CreateAnd(b_.CreateLShr(set, b_.CreateMul(row, b_.getInt32(width))),
                                   b_.getInt32(static_cast<std::uint32_t>((std::uint64_t{1} << width) - 1)))
                    : set;
  Value* wanted = inside ? b_.CreateSelect(inside, mine, b_.getInt32(0)) : mine;
  Value* from = b_.CreateGEP(element_type(*a.mem), base, offset);
  Value* lanes_at = row ? b_.CreateGEP(element_type(*a.mem), array, b_.CreateZExt(b_.CreateMul(row, b_.getInt32(width)), i64)) : array;
  Value* missed = b_.CreateCall(
      step, {lanes_at, from, first, b_.getInt64(static_cast<std::uint64_t>(shapes_[last].column)), memory.pitch[a.rank - 1],
             b_.getInt64(ir::value_mask(t)), b_.getInt64(ir::is_signed(t) && ir::bit_width(t) < 64 ? (ir::value_mask(t) >> 1) + 1 : 0),
             a.checked ? memory.extent[a.rank - 1] : b_.getInt64(~std::uint64_t{0}), wanted});
  if (inside) missed = b_.CreateSelect(inside, missed, mine);
  if (row) {
    missed = b_.CreateOr(bad, b_.CreateShl(missed, b_.CreateMul(row, b_.getInt32(width))));
    Value* next = b_.CreateAdd(row, b_.getInt32(1));
    Block *again = block("row.next"), *done = block("rows.done");
    b_.CreateCondBr(b_.CreateICmpULT(next, b_.getInt32(rows)), again, done);
    start(again);
    row->addIncoming(next, again);
    bad->addIncoming(missed, again);
    loop_back(head);
    start(done);
  }
  if (a.checked) report_lanes(a, missed);
  return stored ? nullptr : b_.CreateLoad(type, array);
}

// Gather and scatter where the CPU has none.
Value* Emitter::each_lane_by_lane(const Access& a, Mask m, Value* index, Value* stored) {
  llvm::Type* type = lanes_of(element_type(*a.mem));
  begin_scratch();
  llvm::AllocaInst *array = lanes_in_memory(stored ? stored : llvm::Constant::getNullValue(type)), *indices = lanes_in_memory(index);
  b_.CreateCall(indexed_helper(stored != nullptr, ir::byte_size(a.mem->element)), {array, memory_base(a.op->index), indices, bits(m)});
  return stored ? nullptr : b_.CreateLoad(type, array);
}

}  // namespace kiln::codegen::host
