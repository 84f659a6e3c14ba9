// The frame of a kernel's function: parameters, memories, the loop over blocks, the loop over warps.
#include "host/emitter.h"

#include <llvm/IR/MDBuilder.h>

namespace kiln::codegen::host {

using llvm::Value;

namespace {

std::uint64_t round_up(std::uint64_t n, std::uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

Emitter::Emitter(llvm::LLVMContext& context, llvm::Module& module, const ir::Prepared& prepared, const CompileOptions& options,
                 const Level& level)
    : c_(context),
      module_(module),
      prepared_(prepared),
      k_(prepared.kernel),
      options_(options),
      level_(level),
      geometry_(options.block),
      structure_(k_),
      shapes_(k_, structure_, geometry_),
      log_stride_(ir::log_stride(k_)),
      used_(k_.ops.size(), 0),
      atomic_(k_.mems.size(), false),
      b_(context),
      arith_(b_, level),
      memory_(k_.mems.size()),
      parameter_(k_.params.size(), nullptr),
      value_(k_.ops.size(), nullptr),
      made_(k_.ops.size(), 0),
      block_value_(k_.ops.size(), nullptr),
      slot_(k_.slots.size(), nullptr),
      value_offset_(k_.ops.size(), 0),
      slot_offset_(k_.slots.size(), 0),
      captured_(k_.ops.size(), nullptr),
      vote_(k_.ops.size(), nullptr) {
  ir::walk(k_, 0, [&](ir::OpId id) {
    const ir::Op& op = k_.op(id);
    for (const ir::ValueId v : op.operands) used_[v] = 1;
    if (ir::is_atomic(op.code)) atomic_[op.index] = true;
  });
  if (structure_.has_barrier) {
    plan_ = std::make_unique<const Plan>(k_, structure_, shapes_);
    // What is one value for the block is uniform in a warp, whatever the warp's own analysis could see.
    for (ir::OpId id = 0; id < k_.ops.size(); ++id) {
      if (plan_->block_value[id]) shapes_.value[id] = {.kind = Shape::Kind::Uniform, .low = shapes_[id].low, .high = shapes_[id].high};
    }
    for (std::uint32_t s = 0; s < k_.slots.size(); ++s) {
      if (plan_->block_slot[s]) shapes_.slot[s] = {.kind = Shape::Kind::Uniform};
    }
  }
}

void Emitter::unsupported(ir::OpId id, const std::string& what) const {
  throw CompileError("kernel '" + k_.name + "', " + ir::to_string(k_, k_.op(id).loc) + ": " + what, true);
}

llvm::AllocaInst* Emitter::variable(llvm::Type* type, const char* name) {
  auto* made = new llvm::AllocaInst(type, 0, name, variables_end_->getIterator());
  return made;
}

void Emitter::loop_back(Block* header) {
  llvm::BranchInst* branch = b_.CreateBr(header);
  llvm::MDNode* keep = llvm::MDNode::get(c_, llvm::MDString::get(c_, "llvm.loop.unroll.disable"));
  llvm::MDNode* loop = llvm::MDNode::getDistinct(c_, {nullptr, keep});
  loop->replaceOperandWith(0, loop);
  branch->setMetadata(llvm::LLVMContext::MD_loop, loop);
}

void Emitter::run(const std::string& symbol) {
  llvm::Type *pointer = b_.getPtrTy(), *i64 = b_.getInt64Ty();
  fn_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), {pointer, pointer, i64, i64, pointer}, false),
                               llvm::Function::ExternalLinkage, symbol, module_);
  fn_->addFnAttr(llvm::Attribute::NoUnwind);
  fn_->addFnAttr("target-cpu", level_.cpu);
  if (level_.avx512) fn_->addFnAttr("prefer-vector-width", "512");
  fn_->addParamAttr(0, llvm::Attribute::NoAlias);
  fn_->addParamAttr(0, llvm::Attribute::ReadOnly);
  fn_->addParamAttr(1, llvm::Attribute::NoAlias);
  fn_->addParamAttr(1, llvm::Attribute::ReadOnly);
  Block *entry = block("entry"), *setup = block("setup");
  b_.SetInsertPoint(entry);
  variables_end_ = b_.CreateBr(setup);
  start(setup);
  Value* grid = fn_->getArg(1);
  for (unsigned a = 0; a < 3; ++a) grid_dim_[a] = b_.CreateLoad(b_.getInt32Ty(), b_.CreateConstGEP1_32(b_.getInt32Ty(), grid, a), "grid");
  dynamic_bytes_ = b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), b_.CreateConstGEP1_32(b_.getInt32Ty(), grid, 3)), i64);
  static_assert(offsetof(HostGrid, global_time) == 16);
  global_time_ = b_.CreateLoad(pointer, b_.CreateConstGEP1_32(b_.getInt8Ty(), grid, offsetof(HostGrid, global_time)));
  read_block(grid);
  load_parameters(fn_->getArg(0));
  declare_where();
  place_memories(fn_->getArg(4));
  make_alias_scopes();
  for (std::uint32_t s = 0; s < k_.slots.size(); ++s) {
    if (!structure_.slot_uses[s].empty()) slot_[s] = variable(held_type(k_.slots[s].type, shapes_.slot[s]), "slot");
  }
  if (structure_.has_return) alive_ = variable(lanes_of(b_.getInt1Ty()), "alive");
  emit_blocks(fn_->getArg(2), fn_->getArg(3));
  b_.CreateRetVoid();
}

void Emitter::load_parameters(Value* params) {
  for (const ir::ParamField& field : ir::param_layout(k_, k_.options.checked).fields) {
    using Kind = ir::ParamField::Kind;
    llvm::Type* type = field.kind == Kind::Scalar ? lane_type(c_, field.type) : b_.getInt64Ty();
    if (field.kind == Kind::Pointer || field.kind == Kind::Fault || field.kind == Kind::Log) type = b_.getPtrTy();
    if (field.kind == Kind::Scalar && ir::is_bool(field.type)) type = b_.getInt8Ty();
    Value* at = b_.CreateConstInBoundsGEP1_32(b_.getInt8Ty(), params, field.offset);
    Value* v = b_.CreateAlignedLoad(type, at, llvm::Align(field.size));
    if (field.kind == Kind::Scalar) {
      parameter_[field.param] = ir::is_bool(field.type) ? b_.CreateICmpNE(v, b_.getInt8(0)) : v;
    } else if (field.kind == Kind::Fault) {
      fault_record_ = v;
    } else if (field.kind == Kind::Log) {
      log_ = v;
    } else {
      Memory& m = memory_[k_.params[field.param].mem];
      if (field.kind == Kind::Pointer) m.base = v;
      if (field.kind == Kind::Extent) m.extent[field.dimension] = v;
      if (field.kind == Kind::Stride) m.pitch[field.dimension] = v;
    }
  }
}

void Emitter::place_memories(Value* scratch) {
  const std::uint64_t shared_end = round_up(prepared_.shared.static_bytes, 16);
  std::uint64_t local_bytes = 0;
  for (std::uint32_t id = 0; id < k_.mems.size(); ++id) {
    const ir::Mem& mem = k_.mems[id];
    Memory& m = memory_[id];
    if (mem.space == ir::Space::Shared) {
      m.base = b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), scratch, mem.dynamic ? shared_end : prepared_.shared.offset[id]);
    }
    if (mem.dynamic) {
      m.extent[0] = b_.CreateUDiv(dynamic_bytes_, b_.getInt64(ir::byte_size(mem.element)));
    } else if (mem.space != ir::Space::Global) {
      for (unsigned d = 0; d < mem.rank; ++d) m.extent[d] = b_.getInt64(mem.extents[d]);
    }
    if (!mem.strided) {
      Value* pitch = b_.getInt64(1);
      for (unsigned d = mem.rank; d-- > 0;) {
        m.pitch[d] = pitch;
        if (d > 0) pitch = b_.CreateMul(pitch, m.extent[d]);
      }
    }
    if (mem.space != ir::Space::Local) continue;
    // Element e of lane l lies at e * 32 + l. Small ones are variables, which LLVM may keep in registers.
    std::uint64_t elements = kLanes;
    for (unsigned d = 0; d < mem.rank; ++d) elements *= mem.extents[d];
    const std::uint64_t bytes = elements * ir::byte_size(mem.element);
    local_bytes += bytes;
    m.in_context = (plan_ && plan_->saved_local[id]) || local_bytes > 64 * 1024;
    if (!m.in_context) {
      llvm::AllocaInst* array = variable(llvm::ArrayType::get(element_type(mem), elements), "local");
      array->setAlignment(llvm::Align(64));
      m.base = array;
    }
  }
  lay_out_context();
  if (context_bytes_ == 0 && context_bytes_per_warp_ == 0) return;
  // After dynamic shared memory, on a cache line of its own.
  Value* after = b_.CreateAnd(b_.CreateAdd(dynamic_bytes_, b_.getInt64(63)), b_.getInt64(~std::uint64_t{63}));
  after = b_.CreateAnd(b_.CreateAdd(after, b_.getInt64(shared_end + 63)), b_.getInt64(~std::uint64_t{63}));
  context_ = b_.CreateInBoundsGEP(b_.getInt8Ty(), scratch, after);
  context_bytes_ += 64;
}

// No two buffers overlap unless the kernel says so (the launch sees to it), and shared memories never do.
void Emitter::make_alias_scopes() {
  llvm::MDBuilder md(c_);
  llvm::MDNode* domain = md.createAnonymousAliasScopeDomain("kernel");
  std::vector<llvm::MDNode*> scope(k_.mems.size(), nullptr);
  for (std::uint32_t m = 0; m < k_.mems.size(); ++m) scope[m] = md.createAnonymousAliasScope(domain, k_.mems[m].name);
  for (std::uint32_t m = 0; m < k_.mems.size(); ++m) {
    std::vector<llvm::Metadata*> others;
    for (std::uint32_t o = 0; o < k_.mems.size(); ++o) {
      bool apart = o != m;
      for (const auto& [p, q] : k_.in_place) {
        const std::uint32_t x = k_.params[p].mem, y = k_.params[q].mem;
        if ((x == m && y == o) || (x == o && y == m)) apart = false;
      }
      if (apart) others.push_back(scope[o]);
    }
    memory_[m].scope = llvm::MDNode::get(c_, {scope[m]});
    if (!others.empty()) memory_[m].others = llvm::MDNode::get(c_, others);
  }
}

void Emitter::emit_blocks(Value* first, Value* last) {
  Block *begin = block("begin"), *head = block("block"), *end = block("end");
  b_.CreateCondBr(b_.CreateICmpULT(first, last), begin, end);
  start(begin);
  llvm::Type *i32 = b_.getInt32Ty(), *i64 = b_.getInt64Ty();
  Value *gx = b_.CreateZExt(grid_dim_[0], i64), *gy = b_.CreateZExt(grid_dim_[1], i64);
  Value* row = b_.CreateUDiv(first, gx);
  Value* start_id[3] = {b_.CreateTrunc(b_.CreateURem(first, gx), i32), b_.CreateTrunc(b_.CreateURem(row, gy), i32),
                        b_.CreateTrunc(b_.CreateUDiv(row, gy), i32)};
  Block* before = b_.GetInsertBlock();
  branch_to(head);
  start(head);
  llvm::PHINode* number = b_.CreatePHI(i64, 2);
  number->addIncoming(first, before);
  llvm::PHINode* id[3];
  for (unsigned a = 0; a < 3; ++a) {
    id[a] = b_.CreatePHI(i32, 2);
    id[a]->addIncoming(start_id[a], before);
    block_id_[a] = id[a];
  }
  note_block();
  block_end_ = block("block.end");
  if (plan_) {
    begin_block_context();
    emit_block_region(0);
  } else {
    emit_warps([&](Mask m) {
      begin_body();
      for (std::uint32_t s = 0; s < k_.slots.size(); ++s) {
        if (slot_[s]) b_.CreateStore(llvm::Constant::getNullValue(slot_[s]->getAllocatedType()), slot_[s]);
      }
      if (alive_) b_.CreateStore(lanes(m), alive_);
      emit_ops(0, 0, m);
      branch_to(body_end_);
      start(body_end_);
    });
  }
  branch_to(block_end_);
  start(block_end_);
  Value *x = b_.CreateAdd(id[0], b_.getInt32(1)), *y = b_.CreateAdd(id[1], b_.getInt32(1)), *z = b_.CreateAdd(id[2], b_.getInt32(1));
  Value* wrap_x = b_.CreateICmpEQ(x, grid_dim_[0]);
  Value* wrap_y = b_.CreateAnd(wrap_x, b_.CreateICmpEQ(y, grid_dim_[1]));
  Value* next[3] = {b_.CreateSelect(wrap_x, b_.getInt32(0), x), b_.CreateSelect(wrap_y, b_.getInt32(0), b_.CreateSelect(wrap_x, y, id[1])),
                    b_.CreateSelect(wrap_y, z, id[2])};
  Value* next_number = b_.CreateAdd(number, b_.getInt64(1));
  number->addIncoming(next_number, block_end_);
  for (unsigned a = 0; a < 3; ++a) id[a]->addIncoming(next[a], block_end_);
  Block* again = block("block.next");
  b_.CreateCondBr(b_.CreateICmpULT(next_number, last), again, end);
  start(again);
  loop_back(head);
  number->replaceIncomingBlockWith(block_end_, again);
  for (llvm::PHINode* phi : id) phi->replaceIncomingBlockWith(block_end_, again);
  start(end);
}

void Emitter::begin_body() {
  ++body_;
  Block *prologue = block("prologue"), *first = block("body");
  branch_to(prologue);
  start(prologue);
  body_prologue_ = b_.CreateBr(first);
  start(first);
  body_end_ = block("body.end");
}

}  // namespace kiln::codegen::host
