// The frame of a kernel: its signature, memories and locals, and the dispatch over operations.
#include "lowering.h"

#include <algorithm>

#include "arith.h"

namespace kiln::codegen::nvptx {

using ir::Form;
using ir::Opcode;
using ir::ParamField;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

namespace {

constexpr unsigned kGlobal = 1, kShared = 3;  // NVPTX address spaces
constexpr std::uint64_t kMaxStaticShared = 48 * 1024;

std::uint64_t element_count(const ir::Mem& mem) {
  std::uint64_t n = 1;
  for (unsigned d = 0; d < mem.rank; ++d) n *= mem.extents[d];
  return n;
}

// The first static shared array that does not end within so many bytes; there is one.
const ir::Mem& first_beyond(const ir::Prepared& prepared, std::uint64_t bytes) {
  const std::vector<ir::Mem>& mems = prepared.kernel.mems;
  std::size_t m = 0;
  while (mems[m].space != ir::Space::Shared || mems[m].dynamic ||
         prepared.shared.offset[m] + element_count(mems[m]) * ir::byte_size(mems[m].element) <= bytes)
    ++m;
  return mems[m];
}

// Whether an operation takes a float operand by its number alone, so that sign and payload of a NaN are lost.
bool only_arithmetic(Opcode code) {
  switch (code) {
    case Opcode::Add:
    case Opcode::Sub:
    case Opcode::Mul:
    case Opcode::Div:
    case Opcode::Min:
    case Opcode::Max:
    case Opcode::MinNan:
    case Opcode::MaxNan:
    case Opcode::Sqrt:
    case Opcode::Floor:
    case Opcode::Ceil:
    case Opcode::Trunc:
    case Opcode::RoundEven:
    case Opcode::Fma:
    case Opcode::Cast: return true;
    default: return ir::info(code).form == Form::Compare;
  }
}

}  // namespace

Lowering::Lowering(llvm::Module& module, const ir::Prepared& prepared, const CompileOptions& options, const PtxTarget& target)
    : c_(module.getContext()),
      m_(module),
      prepared_(prepared),
      k_(prepared.kernel),
      options_(options),
      target_(target),
      facts_(analyze_control(prepared.kernel)),
      symbol_(ir::symbol_name(prepared.kernel.name)),
      log_stride_(ir::log_stride(prepared.kernel)),
      b_(c_),
      lines_(module, prepared.kernel, options.line_info) {
  block_size_ = k_.has_block_size() ? k_.block_size : options.block;
  if (k_.has_block_size() && options.block[0] != 0 && options.block != k_.block_size) {
    throw CompileError("kernel '" + k_.name + "': compiled for a block of another shape than the kernel declares", false);
  }
}

void Lowering::fail(const ir::Op& op, const std::string& what) const {
  throw CompileError(
      "kernel '" + k_.name + "': " + ir::to_string(k_, op.loc) + ": " + std::string(ir::info(op.code).mnemonic) + ": " + what, true);
}

bool Lowering::has(const char* instruction, unsigned sm, const ir::Op& op) {
  if (target_.sm < sm) return false;
  std::string operation(ir::info(op.code).mnemonic);
  if (ir::info(op.code).form == Form::WarpCombine) operation.append(".").append(ir::name(static_cast<ir::Combine>(op.attr)));
  operation.append(" ").append(ir::name(op.type));
  choices_.push_back({.operation = operation,
                      .place = ir::to_string(k_, op.loc),
                      .instruction = instruction,
                      .since = std::string("sm_").append(std::to_string(sm))});
  return true;
}

llvm::Type* Lowering::type(ir::Type t) const { return register_type(c_, t); }

std::vector<Value*> Lowering::values(const std::vector<ir::ValueId>& ids) const {
  std::vector<Value*> v;
  v.reserve(ids.size());
  for (const ir::ValueId id : ids) v.push_back(values_[id]);
  return v;
}

void Lowering::run() {
  nan_bits_matter_ = find_nan_bits_users();
  values_.resize(k_.ops.size());
  declare_kernel();
  lines_.begin(*f_);
  entry_ = block("entry");
  exit_ = block("exit");
  b_.SetInsertPoint(entry_);
  b_.SetCurrentDebugLocation(lines_.at(k_.loc));
  declare_parameters();
  declare_memories();
  declare_slots();
  if (facts_.needs_lanes[0]) mask_.lanes = initial_mask();
  emit_region(0);
  jump(exit_);
  b_.SetInsertPoint(exit_);
  b_.SetCurrentDebugLocation(lines_.at(k_.loc));
  b_.CreateRetVoid();
  lines_.finish();
  if (shared_bytes_ > kMaxStaticShared) {
    const ir::Mem& last = first_beyond(prepared_, kMaxStaticShared);
    throw CompileError("kernel '" + k_.name + "': " + ir::to_string(k_, last.loc) + ": with '" + last.name + "' it has " +
                           std::to_string(shared_bytes_) + " bytes of static shared memory, a GPU gives a block at most " +
                           std::to_string(kMaxStaticShared) + "; more is possible with dynamic shared memory",
                       true);
  }
}

// --- the signature ------------------------------------------------------------------------------------------------

void Lowering::declare_kernel() {
  const ir::ParamLayout layout = ir::param_layout(k_, k_.options.checked);
  std::vector<llvm::Type*> types;
  for (const ParamField& field : layout.fields) {
    switch (field.kind) {
      case ParamField::Kind::Pointer:
      case ParamField::Kind::Fault:
      case ParamField::Kind::Log: types.push_back(llvm::PointerType::get(c_, kGlobal)); break;
      case ParamField::Kind::Extent:
      case ParamField::Kind::Stride: types.push_back(b_.getInt64Ty()); break;
      case ParamField::Kind::Scalar: types.push_back(memory_type(c_, field.type)); break;
    }
  }
  f_ = llvm::Function::Create(llvm::FunctionType::get(b_.getVoidTy(), types, false), llvm::GlobalValue::ExternalLinkage, symbol_, m_);
  f_->setCallingConv(llvm::CallingConv::PTX_Kernel);
  f_->setDoesNotThrow();
  if (block_size_[0] != 0) {
    f_->addFnAttr("nvvm.reqntid",
                  std::to_string(block_size_[0]) + "," + std::to_string(block_size_[1]) + "," + std::to_string(block_size_[2]));
  } else if (k_.max_threads != 0) {
    f_->addFnAttr("nvvm.maxntid", std::to_string(k_.max_threads));
  }
}

void Lowering::declare_parameters() {
  const ir::ParamLayout layout = ir::param_layout(k_, k_.options.checked);
  const std::vector<bool> atomic = ir::atomic_mems(k_);
  std::vector<bool> may_alias(k_.params.size());
  for (const auto& [x, y] : k_.in_place) may_alias[x] = may_alias[y] = true;
  // Threads exchange data through memory at barriers and warp_sync, and clocks stand still over writes. LLVM takes a noalias argument for
  // private to the function and would move accesses over them, so a written buffer is noalias only in a kernel without any.
  bool synchronises = false;
  ir::walk(k_, 0, [&](ir::OpId id) {
    const Opcode code = k_.ops[id].code;
    synchronises |= ir::is_block_barrier(code) || code == Opcode::WarpSync || ir::info(code).effect == ir::Effect::Time;
  });
  scalars_.resize(k_.params.size());
  buffers_.resize(k_.mems.size());
  std::size_t buffer = 0;
  for (std::size_t i = 0; i < layout.fields.size(); ++i) {
    const ParamField& field = layout.fields[i];
    llvm::Argument* const argument = f_->getArg(static_cast<unsigned>(i));
    if (field.kind == ParamField::Kind::Fault || field.kind == ParamField::Kind::Log) {
      (field.kind == ParamField::Kind::Fault ? fault_record_ : log_) = argument;
      argument->addAttr(llvm::Attribute::getWithAlignment(c_, llvm::Align(alignof(std::uint64_t))));
      continue;
    }
    const ir::Param& param = k_.params[field.param];
    if (field.kind == ParamField::Kind::Scalar) {
      scalars_[field.param] = from_memory(b_, field.type, argument);
      continue;
    }
    Parameter& of = buffers_[param.mem];
    if (field.kind == ParamField::Kind::Extent) of.extents[field.dimension] = argument;
    if (field.kind == ParamField::Kind::Stride) of.strides[field.dimension] = argument;
    if (field.kind != ParamField::Kind::Pointer) continue;
    of.pointer = argument;
    const ir::Visibility io = prepared_.io.at(buffer++);
    const unsigned natural = ir::byte_size(k_.mems[param.mem].element);
    argument->addAttr(llvm::Attribute::getWithAlignment(c_, llvm::Align(options_.aligned16 ? 16 : natural)));
    // LLVM 22 crashes on atomic accesses of a readonly noalias argument, and they are shared with other threads by nature.
    if (atomic[param.mem] || may_alias[field.param]) continue;
    if (!ir::writes(io)) {
      argument->addAttr(llvm::Attribute::NoAlias);
      argument->addAttr(llvm::Attribute::ReadOnly);
    } else if (!synchronises) {
      argument->addAttr(llvm::Attribute::NoAlias);
    }
  }
}

void Lowering::declare_memories() {
  storage_.resize(k_.mems.size());
  for (std::uint32_t i = 0; i < k_.mems.size(); ++i) {
    const ir::Mem& mem = k_.mems[i];
    llvm::Type* const element = memory_type(c_, mem.element);
    if (mem.space == ir::Space::Global) {
      storage_[i] = buffers_[i].pointer;
    } else if (mem.space == ir::Space::Local) {
      llvm::AllocaInst* const local = b_.CreateAlloca(llvm::ArrayType::get(element, element_count(mem)));
      local->setAlignment(llvm::Align(16));
      storage_[i] = local;
    } else {
      // "$sh" and "$dy" are in no symbol that ir::symbol_name makes. The host cannot initialise shared memory: undef.
      llvm::ArrayType* const array = llvm::ArrayType::get(element, mem.dynamic ? 0 : element_count(mem));
      auto* const global = new llvm::GlobalVariable(
          m_, array, false, mem.dynamic ? llvm::GlobalValue::ExternalLinkage : llvm::GlobalValue::InternalLinkage,
          mem.dynamic ? nullptr : llvm::UndefValue::get(array), mem.dynamic ? symbol_ + "$dynamic" : "$shared_" + std::to_string(i),
          nullptr, llvm::GlobalValue::NotThreadLocal, kShared);
      global->setAlignment(llvm::Align(16));
      storage_[i] = global;
    }
  }
  shared_bytes_ = prepared_.shared.static_bytes;
}

void Lowering::declare_slots() {
  for (const ir::Slot& slot : k_.slots) {
    llvm::AllocaInst* const storage = b_.CreateAlloca(type(slot.type));
    b_.CreateStore(constant(c_, slot.type, 0), storage);
    slots_.push_back(storage);
  }
}

std::vector<bool> Lowering::find_nan_bits_users() const {
  std::vector<bool> matter(k_.ops.size());
  ir::walk(k_, 0, [&](ir::OpId id) {
    const ir::Op& op = k_.ops[id];
    if (only_arithmetic(op.code)) return;
    for (const ir::ValueId v : op.operands) matter[v] = true;
  });
  return matter;
}

// --- operations ---------------------------------------------------------------------------------------------------

void Lowering::emit_op(ir::OpId id, bool lanes_needed_later) {
  const ir::Op& op = k_.ops[id];
  current_ = &op;
  b_.SetCurrentDebugLocation(lines_.at(op.loc));
  if (op.code == Opcode::BlockUniform) {
    values_[id] = emit_block_uniform(op);
    return;
  }
  switch (ir::info(op.code).form) {
    case Form::Const: values_[id] = constant(c_, op.type, op.imm); break;
    case Form::Query: values_[id] = emit_query(op); break;
    case Form::Unary:
    case Form::Binary:
    case Form::Ternary:
    case Form::IntegerPower:
    case Form::Compare:
    case Form::Select:
    case Form::Convert: {
      const ir::Type operand = k_.ops[op.operands.back()].type;
      values_[id] = emit_pure(b_, op.code, op.type, operand, values(op.operands), nan_bits_matter_[id]);
      if (values_[id] == nullptr) fail(op, "should have been expanded into plain operations before it reached the code generator");
      break;
    }
    case Form::SlotGet: values_[id] = b_.CreateLoad(type(op.type), slots_[op.index]); break;
    case Form::SlotSet: b_.CreateStore(value(op.operands[0]), slots_[op.index]); break;
    case Form::Load:
    case Form::Store:
    case Form::Atomic:
    case Form::AtomicCas: values_[id] = emit_access(op); break;
    case Form::Barrier:
      if (op.code == Opcode::WarpSync) {
        call(Intrinsic::nvvm_bar_warp_sync, {active()});
      } else {
        emit_barrier();
      }
      break;
    case Form::BlockVote: values_[id] = emit_block_vote(op); break;
    case Form::WarpVote: values_[id] = emit_vote(op); break;
    case Form::Shuffle: values_[id] = emit_shuffle(op); break;
    case Form::WarpCombine: values_[id] = op.code == Opcode::WarpReduce ? emit_reduce(op) : emit_scan(op); break;
    case Form::If: emit_if(op, lanes_needed_later); break;
    case Form::Switch: emit_switch(op, lanes_needed_later); break;
    case Form::For: emit_for(id); break;
    case Form::While: emit_while(id); break;
    case Form::Leave: emit_leave(op.code); break;
    case Form::Yield: break;  // read by the loop
    case Form::Check: emit_check(op); break;
    case Form::Text: op.code == Opcode::Trap ? emit_trap(op) : emit_log(op); break;
    case Form::Require: break;  // checked by the host
  }
}

Value* Lowering::emit_query(const ir::Op& op) {
  Value* v = nullptr;
  switch (op.code) {
    case Opcode::Param: return scalars_[op.index];
    case Opcode::Extent: v = extent(op.index, op.attr); break;
    case Opcode::Size:
      v = b_.getInt64(1);
      for (unsigned d = 0; d < k_.mems[op.index].rank; ++d) v = b_.CreateMul(v, extent(op.index, d));
      break;
    case Opcode::Stride: v = buffers_[op.index].strides[op.attr]; break;
    case Opcode::ThreadId: v = thread_id(op.attr); break;
    case Opcode::BlockId: v = special_register(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, op.attr); break;
    case Opcode::BlockDim: v = block_dim(op.attr); break;
    case Opcode::GridDim: v = special_register(Intrinsic::nvvm_read_ptx_sreg_nctaid_x, op.attr); break;
    case Opcode::GlobalId: {
      llvm::Type* const t = type(op.type);
      Value* const first = b_.CreateMul(b_.CreateZExt(special_register(Intrinsic::nvvm_read_ptx_sreg_ctaid_x, op.attr), t),
                                        b_.CreateZExt(block_dim(op.attr), t));
      return b_.CreateAdd(first, b_.CreateZExt(thread_id(op.attr), t));
    }
    case Opcode::LaneId: v = lane(); break;
    case Opcode::WarpId: v = b_.CreateLShr(linear_thread(), 5); break;
    case Opcode::Clock:
    case Opcode::GlobalTime: return read_clock(op.code);
    default: fail(op, "is not known to the code generator");
  }
  return b_.CreateZExtOrTrunc(v, type(op.type));
}

}  // namespace kiln::codegen::nvptx
