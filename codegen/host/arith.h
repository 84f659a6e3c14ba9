// Pure operations as LLVM instructions, with the meaning of DESIGN 5. Each works on scalars and on vectors of lanes alike; no lane ever
// traps, whatever it holds, and no instruction becomes a call that the object would have to import.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "host/level.h"
#include "kiln/ir/kernel.h"

namespace kiln::codegen::host {

// The type of one lane's value, and the same type spread over `lanes` (0: a scalar). f16 and bf16 are their 16 bits, so that LLVM has no
// operation on them.
llvm::Type* lane_type(llvm::LLVMContext& context, ir::Type type);
llvm::Type* value_type(llvm::LLVMContext& context, ir::Type type, unsigned lanes);
llvm::Constant* constant(llvm::Type* type, ir::Type ir_type, std::uint64_t bits);

class Arith {
 public:
  Arith(llvm::IRBuilder<>& builder, const Level& level) : b_(builder), level_(level) {}

  // Form Unary, Binary, Ternary, Compare, Select or Convert. `operand_type` as for ir::evaluate. Operands are all scalars or all vectors
  // (of Select the condition may be a scalar next to vectors). Of f16 and bf16 there are conversions from and to f32 and what only moves
  // bits; the rest is expanded before.
  llvm::Value* emit(ir::Opcode code, ir::Type result, ir::Type operand_type, llvm::ArrayRef<llvm::Value*> in);

 private:
  llvm::Value* binary_integer(ir::Opcode code, ir::Type t, llvm::Value* x, llvm::Value* y);
  llvm::Value* binary_float(ir::Opcode code, llvm::Value* x, llvm::Value* y);
  llvm::Value* extreme(bool max, bool nan_wins, llvm::Value* x, llvm::Value* y);  // of floats
  llvm::Value* divide(ir::Opcode code, ir::Type t, llvm::Value* x, llvm::Value* y);
  llvm::Value* quotient(ir::Type t, llvm::Value* x, llvm::Value* y);
  llvm::Value* shift(ir::Opcode code, ir::Type t, llvm::Value* x, llvm::Value* count);
  llvm::Value* high_product(ir::Type t, llvm::Value* x, llvm::Value* y);
  llvm::Value* unary(ir::Opcode code, ir::Type t, llvm::Value* x);
  llvm::Value* round(ir::Opcode code, llvm::Value* x);
  llvm::Value* compare(ir::Opcode code, ir::Type t, llvm::Value* x, llvm::Value* y);
  llvm::Value* cast(ir::Type from, ir::Type to, llvm::Value* x);
  llvm::Value* float_to_integer(ir::Type to, llvm::Value* x, llvm::Type* result);
  llvm::Value* half_to_f32(ir::Type from, llvm::Value* x);
  llvm::Value* f32_to_half(ir::Type to, llvm::Value* x);
  llvm::Value* native_f32_to_f16(llvm::Value* x);
  llvm::Value* fma(ir::Type t, llvm::Value* x, llvm::Value* y, llvm::Value* z);
  llvm::Value* fma_f32(llvm::Value* x, llvm::Value* y, llvm::Value* z);
  llvm::Value* call(llvm::Intrinsic::ID id, llvm::ArrayRef<llvm::Value*> in);

  llvm::IRBuilder<>& b_;
  const Level& level_;
};

// double kiln_fma_f64(double, double, double): the exact fused multiply-add in integer arithmetic, for CPUs without the instruction. Added
// to the module once.
llvm::Function* soft_fma_f64(llvm::Module& module);

}  // namespace kiln::codegen::host
