#include "arith.h"

#include <llvm/IR/InlineAsm.h>

#include "kiln/ir/eval.h"

namespace kiln::codegen::nvptx {

using ir::Combine;
using ir::Opcode;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

llvm::Type* register_type(llvm::LLVMContext& context, ir::Type type) {
  if (type == ir::Type::F32) return llvm::Type::getFloatTy(context);
  if (type == ir::Type::F64) return llvm::Type::getDoubleTy(context);
  return llvm::Type::getIntNTy(context, ir::bit_width(type));
}

llvm::Type* memory_type(llvm::LLVMContext& context, ir::Type type) {
  return ir::is_bool(type) ? llvm::Type::getInt8Ty(context) : register_type(context, type);
}

llvm::Constant* constant(llvm::LLVMContext& context, ir::Type type, std::uint64_t bits) {
  const llvm::APInt value(ir::bit_width(type), bits);
  llvm::Type* const t = register_type(context, type);
  if (t->isIntegerTy()) return llvm::ConstantInt::get(context, value);
  return llvm::ConstantFP::get(context, llvm::APFloat(t->getFltSemantics(), value));
}

Value* to_memory(llvm::IRBuilder<>& b, ir::Type type, Value* value) {
  return ir::is_bool(type) ? b.CreateZExt(value, b.getInt8Ty()) : value;
}
Value* from_memory(llvm::IRBuilder<>& b, ir::Type type, Value* value) {
  return ir::is_bool(type) ? b.CreateICmpNE(value, b.getInt8(0)) : value;
}

namespace {

// A pure instruction as text, for what LLVM would turn into something else.
Value* assembly(llvm::IRBuilder<>& b, llvm::Type* result, const char* text, const char* constraints, llvm::ArrayRef<Value*> operands) {
  std::vector<llvm::Type*> types;
  for (Value* const operand : operands) types.push_back(operand->getType());
  llvm::CallInst* const call =
      b.CreateCall(llvm::InlineAsm::get(llvm::FunctionType::get(result, types, false), text, constraints, false), operands);
  call->setDoesNotAccessMemory();
  call->setDoesNotThrow();
  return call;
}

// LLVM's count is poison from the width on; ours gives 0, or the sign.
Value* shift(llvm::IRBuilder<>& b, Opcode code, ir::Type type, Value* x, Value* count) {
  const unsigned width = ir::bit_width(type);
  const bool keeps_sign = code == Opcode::Shr && ir::is_signed(type);
  if (width == 64 && !keeps_sign && !llvm::isa<llvm::Constant>(count)) {
    // LLVM 22 knows that PTX clamps counts, but also that it takes 32 bits of them, and makes one shift of a comparison of all 64 and a
    // shift by the low half: wrong from 2^32 on. So the clamp is ours, and out of its sight.
    Value* const clamped =
        b.CreateTrunc(b.CreateBinaryIntrinsic(Intrinsic::umin, count, llvm::ConstantInt::get(count->getType(), width)), b.getInt32Ty());
    return assembly(b, x->getType(), code == Opcode::Shl ? "shl.b64 $0, $1, $2;" : "shr.u64 $0, $1, $2;", "=l,l,r", {x, clamped});
  }
  Value* const in_range = b.CreateICmpULT(count, llvm::ConstantInt::get(count->getType(), width));
  if (keeps_sign) { return b.CreateAShr(x, b.CreateSelect(in_range, count, llvm::ConstantInt::get(count->getType(), width - 1))); }
  Value* const shifted = code == Opcode::Shl ? b.CreateShl(x, count) : b.CreateLShr(x, count);
  return b.CreateSelect(in_range, shifted, llvm::ConstantInt::get(x->getType(), 0));
}

Value* divide(llvm::IRBuilder<>& b, Opcode code, ir::Type type, Value* x, Value* y) {
  llvm::Type* const t = x->getType();
  Value* const zero = llvm::ConstantInt::get(t, 0);
  Value* const one = llvm::ConstantInt::get(t, 1);
  Value* const ones = llvm::ConstantInt::getAllOnesValue(t);
  Value* const by_zero = b.CreateICmpEQ(y, zero);
  const bool rem = code == Opcode::Rem;
  if (!ir::is_signed(type)) {
    Value* const safe = b.CreateSelect(by_zero, one, y);
    return rem ? b.CreateSelect(by_zero, x, b.CreateURem(x, safe)) : b.CreateSelect(by_zero, ones, b.CreateUDiv(x, safe));
  }
  Value* const by_minus_one = b.CreateICmpEQ(y, ones);
  Value* const safe = b.CreateSelect(b.CreateOr(by_zero, by_minus_one), one, y);
  if (rem) return b.CreateSelect(by_zero, x, b.CreateSRem(x, safe));
  return b.CreateSelect(by_zero, ones, b.CreateSelect(by_minus_one, b.CreateNeg(x), b.CreateSDiv(x, safe)));
}

Value* multiply_high(llvm::IRBuilder<>& b, ir::Type type, Value* x, Value* y) {
  const unsigned width = ir::bit_width(type);
  llvm::Type* const wide = b.getIntNTy(2 * width);
  const bool sign = ir::is_signed(type);
  Value* const product = b.CreateMul(b.CreateIntCast(x, wide, sign), b.CreateIntCast(y, wide, sign));
  return b.CreateTrunc(b.CreateLShr(product, width), x->getType());
}

// neg and abs by integer instructions. Inline assembly, because LLVM turns the integer form back into fneg and fabs.
Value* sign_bit_operation(llvm::IRBuilder<>& b, Opcode code, ir::Type type, Value* x) {
  const bool wide = ir::bit_width(type) == 64;
  const char* const text = code == Opcode::Neg ? (wide ? "xor.b64 $0, $1, 0x8000000000000000;" : "xor.b32 $0, $1, 0x80000000;")
                                               : (wide ? "and.b64 $0, $1, 0x7fffffffffffffff;" : "and.b32 $0, $1, 0x7fffffff;");
  return assembly(b, x->getType(), text, wide ? "=d,d" : "=f,f", {x});
}

llvm::CmpInst::Predicate predicate(Opcode code, ir::Type type) {
  using P = llvm::CmpInst;
  if (ir::is_float(type)) {
    switch (code) {
      case Opcode::Eq: return P::FCMP_OEQ;
      case Opcode::Ne: return P::FCMP_UNE;
      case Opcode::Lt: return P::FCMP_OLT;
      case Opcode::Le: return P::FCMP_OLE;
      case Opcode::Gt: return P::FCMP_OGT;
      default: return P::FCMP_OGE;
    }
  }
  const bool sign = ir::is_signed(type);
  switch (code) {
    case Opcode::Eq: return P::ICMP_EQ;
    case Opcode::Ne: return P::ICMP_NE;
    case Opcode::Lt: return sign ? P::ICMP_SLT : P::ICMP_ULT;
    case Opcode::Le: return sign ? P::ICMP_SLE : P::ICMP_ULE;
    case Opcode::Gt: return sign ? P::ICMP_SGT : P::ICMP_UGT;
    default: return sign ? P::ICMP_SGE : P::ICMP_UGE;
  }
}

// f16 by the hardware's conversions, as text, since of its own LLVM makes operations on halves; bf16 by integers on every architecture.
Value* half_to_f32(llvm::IRBuilder<>& b, ir::Type from, Value* x) {
  if (from == ir::Type::F16) return assembly(b, b.getFloatTy(), "cvt.f32.f16 $0, $1;", "=f,h", {x});
  return b.CreateBitCast(b.CreateShl(b.CreateZExt(x, b.getInt32Ty()), 16), b.getFloatTy());
}

Value* f32_to_half(llvm::IRBuilder<>& b, ir::Type to, Value* x) {
  if (to == ir::Type::F16) return assembly(b, b.getInt16Ty(), "cvt.rn.f16.f32 $0, $1;", "=h,f", {x});
  Value* const bits = b.CreateBitCast(x, b.getInt32Ty());
  Value* const last = b.CreateAnd(b.CreateLShr(bits, 16), 1);
  Value* const rounded = b.CreateTrunc(b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, b.getInt32(0x7fff)), last), 16), b.getInt16Ty());
  return b.CreateSelect(b.CreateFCmpUNO(x, x), b.getInt16(0x7fc0), rounded);
}

Value* cast(llvm::IRBuilder<>& b, ir::Type to, ir::Type from, Value* x) {
  llvm::Type* const t = register_type(b.getContext(), to);
  if (to == from) return x;
  if (ir::is_half(from)) return to == ir::Type::F32 ? half_to_f32(b, from, x) : nullptr;
  if (ir::is_half(to)) return from == ir::Type::F32 ? f32_to_half(b, to, x) : nullptr;
  if (ir::is_bool(to)) {
    if (ir::is_float(from)) return b.CreateFCmpUNE(x, llvm::ConstantFP::get(x->getType(), 0.0));
    return b.CreateICmpNE(x, llvm::ConstantInt::get(x->getType(), 0));
  }
  if (ir::is_float(to)) {
    if (ir::is_float(from)) return b.CreateFPCast(x, t);
    return ir::is_signed(from) ? b.CreateSIToFP(x, t) : b.CreateUIToFP(x, t);
  }
  if (ir::is_float(from))
    return b.CreateIntrinsic(ir::is_signed(to) ? Intrinsic::fptosi_sat : Intrinsic::fptoui_sat, {t, x->getType()}, {x});
  return b.CreateIntCast(x, t, ir::is_signed(from));
}

Value* leading_zeros(llvm::IRBuilder<>& b, Value* x) { return b.CreateIntrinsic(Intrinsic::ctlz, {x->getType()}, {x, b.getFalse()}); }

Value* min_max(llvm::IRBuilder<>& b, bool max, ir::Type type, Value* x, Value* y) {
  if (ir::is_float(type)) return b.CreateBinaryIntrinsic(max ? Intrinsic::maximumnum : Intrinsic::minimumnum, x, y);
  if (ir::is_signed(type)) return b.CreateBinaryIntrinsic(max ? Intrinsic::smax : Intrinsic::smin, x, y);
  return b.CreateBinaryIntrinsic(max ? Intrinsic::umax : Intrinsic::umin, x, y);
}

}  // namespace

// LLVM makes a branch and a bit count of its own cttz, and a cttz of anything it recognises as one.
Value* trailing_zeros(llvm::IRBuilder<>& b, Value* x) {
  if (const unsigned width = x->getType()->getIntegerBitWidth(); width < 32) {  // a bit of its own stands where the value ends
    Value* const marked = b.CreateOr(b.CreateZExt(x, b.getInt32Ty()), b.getInt32(1u << width));
    return b.CreateTrunc(trailing_zeros(b, marked), x->getType());
  }
  const bool wide = x->getType()->isIntegerTy(64);
  return leading_zeros(b, assembly(b, x->getType(), wide ? "brev.b64 $0, $1;" : "brev.b32 $0, $1;", wide ? "=l,l" : "=r,r", {x}));
}

Value* emit_pure(llvm::IRBuilder<>& b, Opcode code, ir::Type result, ir::Type operand, std::span<Value* const> v, bool nan_bits_matter) {
  const bool f = ir::is_float(operand);
  if (ir::is_half(operand) && code != Opcode::Select && code != Opcode::Cast && code != Opcode::BitCast) return nullptr;
  switch (code) {
    case Opcode::Add: return f ? b.CreateFAdd(v[0], v[1]) : b.CreateAdd(v[0], v[1]);
    case Opcode::Sub: return f ? b.CreateFSub(v[0], v[1]) : b.CreateSub(v[0], v[1]);
    case Opcode::Mul: return f ? b.CreateFMul(v[0], v[1]) : b.CreateMul(v[0], v[1]);
    case Opcode::Div: return f ? b.CreateFDiv(v[0], v[1]) : divide(b, code, operand, v[0], v[1]);
    case Opcode::Rem:
      if (f) break;  // expanded by the math pass: LLVM's frem is not exact here
      return divide(b, code, operand, v[0], v[1]);
    case Opcode::Min:
    case Opcode::Max: return min_max(b, code == Opcode::Max, operand, v[0], v[1]);
    case Opcode::MinNan: return b.CreateBinaryIntrinsic(Intrinsic::minimum, v[0], v[1]);
    case Opcode::MaxNan: return b.CreateBinaryIntrinsic(Intrinsic::maximum, v[0], v[1]);
    case Opcode::And: return b.CreateAnd(v[0], v[1]);
    case Opcode::Or: return b.CreateOr(v[0], v[1]);
    case Opcode::Xor: return b.CreateXor(v[0], v[1]);
    case Opcode::Shl:
    case Opcode::Shr: return shift(b, code, operand, v[0], v[1]);
    case Opcode::MulHi: return multiply_high(b, operand, v[0], v[1]);
    case Opcode::CopySign: return b.CreateBinaryIntrinsic(Intrinsic::copysign, v[0], v[1]);
    case Opcode::Neg:
      if (!f) return b.CreateNeg(v[0]);
      return nan_bits_matter ? sign_bit_operation(b, code, operand, v[0]) : b.CreateFNeg(v[0]);
    case Opcode::Abs:
      if (ir::is_unsigned(operand)) return v[0];
      if (!f) return b.CreateBinaryIntrinsic(Intrinsic::abs, v[0], b.getFalse());
      return nan_bits_matter ? sign_bit_operation(b, code, operand, v[0]) : b.CreateUnaryIntrinsic(Intrinsic::fabs, v[0]);
    case Opcode::Not: return b.CreateNot(v[0]);
    case Opcode::Clz: return leading_zeros(b, v[0]);
    case Opcode::Ctz: return trailing_zeros(b, v[0]);
    case Opcode::Popcount: return b.CreateUnaryIntrinsic(Intrinsic::ctpop, v[0]);
    case Opcode::Sqrt: return b.CreateUnaryIntrinsic(Intrinsic::sqrt, v[0]);
    case Opcode::Floor: return b.CreateUnaryIntrinsic(Intrinsic::floor, v[0]);
    case Opcode::Ceil: return b.CreateUnaryIntrinsic(Intrinsic::ceil, v[0]);
    case Opcode::Trunc: return b.CreateUnaryIntrinsic(Intrinsic::trunc, v[0]);
    case Opcode::RoundEven: return b.CreateUnaryIntrinsic(Intrinsic::roundeven, v[0]);
    case Opcode::Fma: return b.CreateIntrinsic(Intrinsic::fma, {v[0]->getType()}, {v[0], v[1], v[2]});
    case Opcode::Eq:
    case Opcode::Ne:
    case Opcode::Lt:
    case Opcode::Le:
    case Opcode::Gt:
    case Opcode::Ge: return b.CreateCmp(predicate(code, operand), v[0], v[1]);
    case Opcode::Select: return b.CreateSelect(v[0], v[1], v[2]);
    case Opcode::Cast: return cast(b, result, operand, v[0]);
    case Opcode::BitCast: return b.CreateBitCast(v[0], register_type(b.getContext(), result));
    default: break;
  }
  return nullptr;
}

Value* emit_combine(llvm::IRBuilder<>& b, Combine how, ir::Type type, Value* x, Value* y) {
  constexpr Opcode codes[] = {Opcode::Add, Opcode::Mul, Opcode::Min, Opcode::Max, Opcode::And, Opcode::Or, Opcode::Xor};
  const Opcode code = codes[static_cast<int>(how)];
  const bool half = ir::is_half(type);
  const ir::Type computed = half ? ir::Type::F32 : type;
  Value* const operands[] = {half ? half_to_f32(b, type, x) : x, half ? half_to_f32(b, type, y) : y};
  Value* const result = emit_pure(b, code, computed, computed, operands, false);
  return half ? f32_to_half(b, type, result) : result;
}

llvm::Constant* identity_constant(llvm::LLVMContext& context, Combine how, ir::Type type) {
  return constant(context, type, ir::identity(how, type));
}

}  // namespace kiln::codegen::nvptx
