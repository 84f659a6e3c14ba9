// The pure operations as LLVM IR, exactly as DESIGN 5 defines them: never poison, never a trap, whatever the operands.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include <span>

#include "kiln/ir/kernel.h"

namespace kiln::codegen::nvptx {

llvm::Type* register_type(llvm::LLVMContext& context,
                          ir::Type type);  // bool is i1; f16 and bf16 are their 16 bits, so that LLVM has no operation on them
llvm::Type* memory_type(llvm::LLVMContext& context, ir::Type type);  // bool is i8
llvm::Constant* constant(llvm::LLVMContext& context, ir::Type type, std::uint64_t bits);
llvm::Value* to_memory(llvm::IRBuilder<>& b, ir::Type type, llvm::Value* value);
llvm::Value* from_memory(llvm::IRBuilder<>& b, ir::Type type, llvm::Value* value);  // any byte that is not 0 is true

// What evaluate() of kiln/ir/eval.h computes. `operand` is the type of the computed operands (Select: of the second). `nan_bits_matter`:
// for neg and abs of floats, that somebody may look at the sign or payload of a NaN result (PTX's neg and abs do not promise them). Null
// for an operation that is expanded before any backend.
llvm::Value* emit_pure(llvm::IRBuilder<>& b, ir::Opcode code, ir::Type result, ir::Type operand, std::span<llvm::Value* const> v,
                       bool nan_bits_matter);

llvm::Value* trailing_zeros(llvm::IRBuilder<>& b, llvm::Value* x);  // of 32 or 64 bits; the width for 0

// combine() of kiln/ir/eval.h, and its identity.
llvm::Value* emit_combine(llvm::IRBuilder<>& b, ir::Combine how, ir::Type type, llvm::Value* x, llvm::Value* y);
llvm::Constant* identity_constant(llvm::LLVMContext& context, ir::Combine how, ir::Type type);

}  // namespace kiln::codegen::nvptx
