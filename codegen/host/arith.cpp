#include "host/arith.h"

#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/IR/PatternMatch.h>

#include <algorithm>
#include <cmath>

namespace kiln::codegen::host {

using ir::Opcode;
using ir::Type;
using llvm::Value;

llvm::Type* lane_type(llvm::LLVMContext& c, Type type) {
  if (type == Type::F32) return llvm::Type::getFloatTy(c);
  if (type == Type::F64) return llvm::Type::getDoubleTy(c);
  return llvm::Type::getIntNTy(c, ir::bit_width(type));
}

llvm::Type* value_type(llvm::LLVMContext& c, Type type, unsigned lanes) {
  llvm::Type* lane = lane_type(c, type);
  return lanes == 0 ? lane : llvm::FixedVectorType::get(lane, lanes);
}

llvm::Constant* constant(llvm::Type* type, Type ir_type, std::uint64_t bits) {
  llvm::Type* lane = type->getScalarType();
  const llvm::APInt pattern(ir::bit_width(ir_type), bits);
  llvm::Constant* one = lane->isIntegerTy() ? static_cast<llvm::Constant*>(llvm::ConstantInt::get(lane, pattern))
                                            : llvm::ConstantFP::get(lane->getContext(), llvm::APFloat(lane->getFltSemantics(), pattern));
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type))
    return llvm::ConstantVector::getSplat(vector->getElementCount(), one);
  return one;
}

namespace {

// The same shape as `like`, of another lane type.
llvm::Type* with_lane(llvm::Type* like, llvm::Type* lane) {
  if (const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like)) return llvm::FixedVectorType::get(lane, vector->getNumElements());
  return lane;
}

llvm::Constant* integer(llvm::Type* type, std::uint64_t v) { return llvm::ConstantInt::get(type, v, false, true); }
llvm::Constant* real(llvm::Type* type, double v) { return llvm::ConstantFP::get(type, v); }

}  // namespace

Value* Arith::call(llvm::Intrinsic::ID id, llvm::ArrayRef<Value*> in) { return b_.CreateIntrinsic(id, {in[0]->getType()}, in); }

Value* Arith::emit(Opcode code, Type result, Type operand_type, llvm::ArrayRef<Value*> in) {
  const bool converts = code == Opcode::Cast && (operand_type == result || operand_type == Type::F32 || result == Type::F32);
  if ((ir::is_half(operand_type) || (code == Opcode::Cast && ir::is_half(result))) && code != Opcode::Select && code != Opcode::BitCast &&
      !converts) {
    throw CompileError("the operation '" + std::string(ir::info(code).mnemonic) + "' of " + std::string(ir::name(operand_type)) +
                           " should have been expanded before code generation",
                       false);
  }
  switch (ir::info(code).form) {
    case ir::Form::Unary: return unary(code, operand_type, in[0]);
    case ir::Form::Binary:
      return ir::is_float(operand_type) ? binary_float(code, in[0], in[1]) : binary_integer(code, operand_type, in[0], in[1]);
    case ir::Form::Ternary: return fma(operand_type, in[0], in[1], in[2]);
    case ir::Form::Compare: return compare(code, operand_type, in[0], in[1]);
    case ir::Form::Select: return b_.CreateSelect(in[0], in[1], in[2]);
    case ir::Form::Convert:
      if (code == Opcode::BitCast) return b_.CreateBitCast(in[0], with_lane(in[0]->getType(), lane_type(b_.getContext(), result)));
      return cast(operand_type, result, in[0]);
    default:
      throw CompileError("the operation '" + std::string(ir::info(code).mnemonic) + "' has no meaning as arithmetic on the CPU", true);
  }
}

// --- integers -----------------------------------------------------------------------------------------------------------

Value* Arith::binary_integer(Opcode code, Type t, Value* x, Value* y) {
  const bool is_signed = ir::is_signed(t);
  switch (code) {
    case Opcode::Add: return b_.CreateAdd(x, y);
    case Opcode::Sub: return b_.CreateSub(x, y);
    case Opcode::Mul: return b_.CreateMul(x, y);
    case Opcode::Div:
    case Opcode::Rem: return divide(code, t, x, y);
    case Opcode::Min: return call(is_signed ? llvm::Intrinsic::smin : llvm::Intrinsic::umin, {x, y});
    case Opcode::Max: return call(is_signed ? llvm::Intrinsic::smax : llvm::Intrinsic::umax, {x, y});
    case Opcode::And: return b_.CreateAnd(x, y);
    case Opcode::Or: return b_.CreateOr(x, y);
    case Opcode::Xor: return b_.CreateXor(x, y);
    case Opcode::Shl:
    case Opcode::Shr: return shift(code, t, x, y);
    case Opcode::MulHi: return high_product(t, x, y);
    default: throw CompileError("the operation '" + std::string(ir::info(code).mnemonic) + "' is not built for integers on the CPU", true);
  }
}

// LLVM's shifts are undefined from the width on; a select keeps such lanes out.
Value* Arith::shift(Opcode code, Type t, Value* x, Value* count) {
  llvm::Type* type = x->getType();
  const unsigned width = ir::bit_width(t);
  if (code == Opcode::Shr && ir::is_signed(t)) return b_.CreateAShr(x, call(llvm::Intrinsic::umin, {count, integer(type, width - 1)}));
  Value* shifted = code == Opcode::Shl ? b_.CreateShl(x, count) : b_.CreateLShr(x, count);
  return b_.CreateSelect(b_.CreateICmpULT(count, integer(type, width)), shifted, llvm::Constant::getNullValue(type));
}

Value* Arith::divide(Opcode code, Type t, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  Value* zero = llvm::Constant::getNullValue(type);
  Value* is_zero = b_.CreateICmpEQ(y, zero);
  Value* unsafe = is_zero;
  if (ir::is_signed(t)) {
    Value* min = integer(type, std::uint64_t{1} << (ir::bit_width(t) - 1));
    Value* overflow = b_.CreateAnd(b_.CreateICmpEQ(x, min), b_.CreateICmpEQ(y, llvm::Constant::getAllOnesValue(type)));
    unsafe = b_.CreateOr(unsafe, overflow);
  }
  // MIN / 1 and MIN % 1 are what MIN / -1 and MIN % -1 must give.
  Value* safe = b_.CreateSelect(unsafe, integer(type, 1), y);
  Value* q = quotient(t, x, safe);
  if (code == Opcode::Div) return b_.CreateSelect(is_zero, llvm::Constant::getAllOnesValue(type), q);
  return b_.CreateSelect(is_zero, x, b_.CreateSub(x, b_.CreateMul(q, safe)));
}

// y is not 0, and not -1 next to the least x.
Value* Arith::quotient(Type t, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  const bool is_signed = ir::is_signed(t);
  if (!type->isVectorTy() || ir::bit_width(t) > 32 || llvm::isa<llvm::Constant>(y))
    return is_signed ? b_.CreateSDiv(x, y) : b_.CreateUDiv(x, y);
  // The CPU has no vector division of integers. A quotient of 32-bit integers, computed in f64, or of 16-bit ones in f32, is off by less
  // than its distance to the next integer.
  llvm::Type* real_type = with_lane(type, ir::bit_width(t) > 16 ? b_.getDoubleTy() : b_.getFloatTy());
  if (is_signed) return b_.CreateFPToSI(b_.CreateFDiv(b_.CreateSIToFP(x, real_type), b_.CreateSIToFP(y, real_type)), type);
  return b_.CreateFPToUI(b_.CreateFDiv(b_.CreateUIToFP(x, real_type), b_.CreateUIToFP(y, real_type)), type);
}

Value* Arith::high_product(Type t, Value* x, Value* y) {
  llvm::Type* type = x->getType();
  const unsigned width = ir::bit_width(t);
  const bool is_signed = ir::is_signed(t);
  if (!type->isVectorTy() || width < 64) {
    llvm::Type* wide = with_lane(type, b_.getIntNTy(2 * width));
    const auto widen = [&](Value* v) { return is_signed ? b_.CreateSExt(v, wide) : b_.CreateZExt(v, wide); };
    return b_.CreateTrunc(b_.CreateLShr(b_.CreateMul(widen(x), widen(y)), integer(wide, width)), type);
  }
  // Four products of halves, so that lanes stay in vectors.
  Value *half = integer(type, 32), *low_mask = integer(type, 0xffffffffu);
  Value *x0 = b_.CreateAnd(x, low_mask), *x1 = b_.CreateLShr(x, half), *y0 = b_.CreateAnd(y, low_mask), *y1 = b_.CreateLShr(y, half);
  Value *p00 = b_.CreateMul(x0, y0), *p01 = b_.CreateMul(x0, y1), *p10 = b_.CreateMul(x1, y0), *p11 = b_.CreateMul(x1, y1);
  Value* middle = b_.CreateAdd(b_.CreateAdd(b_.CreateLShr(p00, half), b_.CreateAnd(p01, low_mask)), b_.CreateAnd(p10, low_mask));
  Value* high =
      b_.CreateAdd(b_.CreateAdd(p11, b_.CreateLShr(middle, half)), b_.CreateAdd(b_.CreateLShr(p01, half), b_.CreateLShr(p10, half)));
  if (!is_signed) return high;
  Value* sign = integer(type, 63);
  return b_.CreateSub(b_.CreateSub(high, b_.CreateAnd(b_.CreateAShr(x, sign), y)), b_.CreateAnd(b_.CreateAShr(y, sign), x));
}

// --- floats ---------------------------------------------------------------------------------------------------------------

Value* Arith::binary_float(Opcode code, Value* x, Value* y) {
  switch (code) {
    case Opcode::Add: return b_.CreateFAdd(x, y);
    case Opcode::Sub: return b_.CreateFSub(x, y);
    case Opcode::Mul: return b_.CreateFMul(x, y);
    case Opcode::Div: return b_.CreateFDiv(x, y);
    case Opcode::Min: return extreme(false, false, x, y);
    case Opcode::Max: return extreme(true, false, x, y);
    case Opcode::MinNan: return extreme(false, true, x, y);
    case Opcode::MaxNan: return extreme(true, true, x, y);
    case Opcode::CopySign: return call(llvm::Intrinsic::copysign, {x, y});
    default: throw CompileError("the operation '" + std::string(ir::info(code).mnemonic) + "' is not built for floats on the CPU", true);
  }
}

// Not LLVM's minimumnum, maximumnum, minimum and maximum: with AVX512DQ LLVM 22 makes scalars of them that give a NaN for (NaN, number),
// where the number is known to be one, and a number for (signalling NaN, number), where the NaN is to win. The selects below become min and
// max instructions of the CPU, which give the second operand where the two do not compare.
Value* Arith::extreme(bool max, bool nan_wins, Value* x, Value* y) {
  if (llvm::isa<llvm::Constant>(x)) std::swap(x, y);
  const llvm::APFloat* number = nullptr;  // y, when it is known
  const bool known = llvm::PatternMatch::match(y, llvm::PatternMatch::m_APFloat(number)) && !number->isNaN();
  if (known && nan_wins && !number->isZero()) {
    return b_.CreateSelect(max ? b_.CreateFCmpOGT(y, x) : b_.CreateFCmpOLT(y, x), y, x);  // x where they do not compare
  }
  Value* chosen = nullptr;
  if (known) {
    // The zeros compare equal: x is the other zero or the same, and -0 is less than 0.
    const bool x_when_equal = number->isZero() && number->isNegative() == max;
    const auto better = max ? (x_when_equal ? llvm::CmpInst::FCMP_OGE : llvm::CmpInst::FCMP_OGT)
                            : (x_when_equal ? llvm::CmpInst::FCMP_OLE : llvm::CmpInst::FCMP_OLT);
    chosen = b_.CreateSelect(b_.CreateFCmp(better, x, y), x, y);
  } else {
    chosen = b_.CreateSelect(max ? b_.CreateFCmpOGT(x, y) : b_.CreateFCmpOLT(x, y), x, y);
    // Equal ones have the same bits, but for the zeros: of those the greater has no bit.
    llvm::Type* bits = with_lane(x->getType(), b_.getIntNTy(x->getType()->getScalarSizeInBits()));
    Value *x_bits = b_.CreateBitCast(x, bits), *y_bits = b_.CreateBitCast(y, bits);
    Value* both = b_.CreateBitCast(max ? b_.CreateAnd(x_bits, y_bits) : b_.CreateOr(x_bits, y_bits), x->getType());
    chosen = b_.CreateSelect(b_.CreateFCmpOEQ(x, y), both, chosen);
  }
  // So far it is y where one is a NaN.
  if (nan_wins) return b_.CreateSelect(b_.CreateFCmpUNO(x, x), x, chosen);
  return known ? chosen : b_.CreateSelect(b_.CreateFCmpUNO(y, y), x, chosen);
}

Value* Arith::unary(Opcode code, Type t, Value* x) {
  const bool real_type = ir::is_float(t);
  switch (code) {
    case Opcode::Neg: return real_type ? b_.CreateFNeg(x) : b_.CreateNeg(x);
    case Opcode::Abs:
      if (real_type) return call(llvm::Intrinsic::fabs, {x});
      return ir::is_signed(t) ? call(llvm::Intrinsic::abs, {x, b_.getFalse()}) : x;
    case Opcode::Not: return b_.CreateNot(x);
    case Opcode::Clz: return call(llvm::Intrinsic::ctlz, {x, b_.getFalse()});
    case Opcode::Ctz: return call(llvm::Intrinsic::cttz, {x, b_.getFalse()});
    case Opcode::Popcount: return call(llvm::Intrinsic::ctpop, {x});
    case Opcode::Sqrt: return call(llvm::Intrinsic::sqrt, {x});
    case Opcode::Floor:
    case Opcode::Ceil:
    case Opcode::Trunc:
    case Opcode::RoundEven: return round(code, x);
    default:
      throw CompileError("the operation '" + std::string(ir::info(code).mnemonic) + "' should have been expanded before code generation",
                         false);
  }
}

Value* Arith::round(Opcode code, Value* x) {
  if (level_.sse41) {
    const auto id = code == Opcode::Floor   ? llvm::Intrinsic::floor
                    : code == Opcode::Ceil  ? llvm::Intrinsic::ceil
                    : code == Opcode::Trunc ? llvm::Intrinsic::trunc
                                            : llvm::Intrinsic::roundeven;
    return call(id, {x});
  }
  // Without rounding instructions (LLVM would call libm): adding and taking away 2^(precision - 1) rounds to the nearest even integer,
  // which is then corrected by one.
  llvm::Type* type = x->getType();
  Value* magic = real(type, type->getScalarType()->isFloatTy() ? 0x1p23 : 0x1p52);
  Value* magnitude = call(llvm::Intrinsic::fabs, {x});
  Value* nearest = b_.CreateFSub(b_.CreateFAdd(magnitude, magic), magic);
  Value *one = real(type, 1), *zero = real(type, 0);
  if (code == Opcode::Trunc) {
    nearest = b_.CreateFSub(nearest, b_.CreateSelect(b_.CreateFCmpOGT(nearest, magnitude), one, zero));
  } else if (code != Opcode::RoundEven) {
    nearest = call(llvm::Intrinsic::copysign, {nearest, x});
    if (code == Opcode::Floor) {
      nearest = b_.CreateFSub(nearest, b_.CreateSelect(b_.CreateFCmpOGT(nearest, x), one, zero));
    } else {
      nearest = b_.CreateFAdd(nearest, b_.CreateSelect(b_.CreateFCmpOLT(nearest, x), one, zero));
    }
  }
  Value* rounded = call(llvm::Intrinsic::copysign, {nearest, x});
  return b_.CreateSelect(b_.CreateFCmpOLT(magnitude, magic), rounded, x);  // the large ones are integers, NaN stays
}

// Without the instruction: a function of its own, since the exact expansion is long and kernels are full of it.
Value* Arith::fma(Type t, Value* x, Value* y, Value* z) {
  llvm::Type* type = x->getType();
  if (level_.fma) return b_.CreateIntrinsic(llvm::Intrinsic::fma, {type}, {x, y, z});
  llvm::Module& module = *b_.GetInsertBlock()->getModule();
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  if (t == Type::F64 && vector == nullptr) return b_.CreateCall(soft_fma_f64(module), {x, y, z});
  const std::string name =
      std::string(t == Type::F32 ? "kiln_fma_f32" : "kiln_fma_f64") + (vector ? "_x" + std::to_string(vector->getNumElements()) : "");
  llvm::Function* function = module.getFunction(name);
  if (function == nullptr) {
    function =
        llvm::Function::Create(llvm::FunctionType::get(type, {type, type, type}, false), llvm::Function::InternalLinkage, name, module);
    function->addFnAttr(llvm::Attribute::NoUnwind);
    function->addFnAttr(llvm::Attribute::NoInline);
    function->setMemoryEffects(llvm::MemoryEffects::none());
    llvm::IRBuilder<> body(llvm::BasicBlock::Create(b_.getContext(), "entry", function));
    Value *fx = function->getArg(0), *fy = function->getArg(1), *fz = function->getArg(2);
    Arith inside(body, level_);
    if (t == Type::F32) {
      body.CreateRet(inside.fma_f32(fx, fy, fz));
    } else {
      Value* result = llvm::Constant::getNullValue(type);
      for (unsigned l = 0; l < vector->getNumElements(); ++l) {
        Value* one = body.CreateCall(
            soft_fma_f64(module), {body.CreateExtractElement(fx, l), body.CreateExtractElement(fy, l), body.CreateExtractElement(fz, l)});
        result = body.CreateInsertElement(result, one, l);
      }
      body.CreateRet(result);
    }
  }
  return b_.CreateCall(function, {x, y, z});
}

// The product is exact in f64. The sum is rounded to odd there, so that rounding it again to f32 is rounding the exact result once.
Value* Arith::fma_f32(Value* x, Value* y, Value* z) {
  llvm::Type* type = x->getType();
  llvm::Type* wide = with_lane(type, b_.getDoubleTy());
  llvm::Type* bits_type = with_lane(type, b_.getInt64Ty());
  Value* product = b_.CreateFMul(b_.CreateFPExt(x, wide), b_.CreateFPExt(y, wide));
  Value* addend = b_.CreateFPExt(z, wide);
  Value* sum = b_.CreateFAdd(product, addend);
  Value* back = b_.CreateFSub(sum, product);
  Value* error = b_.CreateFAdd(b_.CreateFSub(product, b_.CreateFSub(sum, back)), b_.CreateFSub(addend, back));
  Value* zero = real(wide, 0);
  Value* bits = b_.CreateBitCast(sum, bits_type);
  Value* even = b_.CreateICmpEQ(b_.CreateAnd(bits, integer(bits_type, 1)), integer(bits_type, 0));
  Value* inexact = b_.CreateFCmpONE(error, zero);  // false for NaN, which an infinite sum leaves
  Value* away = b_.CreateICmpEQ(b_.CreateFCmpOGT(error, zero), b_.CreateFCmpOGT(sum, zero));
  Value* step = b_.CreateSelect(away, integer(bits_type, 1), llvm::Constant::getAllOnesValue(bits_type));
  Value* odd = b_.CreateSelect(b_.CreateAnd(inexact, even), b_.CreateAdd(bits, step), bits);
  return b_.CreateFPTrunc(b_.CreateBitCast(odd, wide), type);
}

// --- compares and conversions ---------------------------------------------------------------------------------------------------

Value* Arith::compare(Opcode code, Type t, Value* x, Value* y) {
  using P = llvm::CmpInst::Predicate;
  const auto pick = [&](P real_p, P signed_p, P unsigned_p) { return ir::is_float(t) ? real_p : ir::is_signed(t) ? signed_p : unsigned_p; };
  P p;
  switch (code) {
    case Opcode::Eq: p = pick(P::FCMP_OEQ, P::ICMP_EQ, P::ICMP_EQ); break;
    case Opcode::Ne: p = pick(P::FCMP_UNE, P::ICMP_NE, P::ICMP_NE); break;
    case Opcode::Lt: p = pick(P::FCMP_OLT, P::ICMP_SLT, P::ICMP_ULT); break;
    case Opcode::Le: p = pick(P::FCMP_OLE, P::ICMP_SLE, P::ICMP_ULE); break;
    case Opcode::Gt: p = pick(P::FCMP_OGT, P::ICMP_SGT, P::ICMP_UGT); break;
    default: p = pick(P::FCMP_OGE, P::ICMP_SGE, P::ICMP_UGE); break;
  }
  return b_.CreateCmp(p, x, y);
}

Value* Arith::cast(Type from, Type to, Value* x) {
  llvm::Type* type = with_lane(x->getType(), lane_type(b_.getContext(), to));
  if (from == to) return x;
  if (ir::is_half(from)) return half_to_f32(from, x);
  if (ir::is_half(to)) return f32_to_half(to, x);
  if (ir::is_bool(to)) {
    Value* zero = llvm::Constant::getNullValue(x->getType());
    return ir::is_float(from) ? b_.CreateFCmpUNE(x, zero) : b_.CreateICmpNE(x, zero);
  }
  if (ir::is_bool(from)) return ir::is_float(to) ? b_.CreateSelect(x, real(type, 1), real(type, 0)) : b_.CreateZExt(x, type);
  if (ir::is_float(from)) return ir::is_float(to) ? b_.CreateFPCast(x, type) : float_to_integer(to, x, type);
  if (ir::is_float(to)) return ir::is_signed(from) ? b_.CreateSIToFP(x, type) : b_.CreateUIToFP(x, type);
  return ir::is_signed(from) ? b_.CreateSExtOrTrunc(x, type) : b_.CreateZExtOrTrunc(x, type);
}

// With integers where the CPU has no instruction: LLVM would call a function of the compiler's library.
Value* Arith::half_to_f32(Type from, Value* x) {
  llvm::Type *real_type = with_lane(x->getType(), b_.getFloatTy()), *word = with_lane(x->getType(), b_.getInt32Ty());
  if (from == Type::BF16) return b_.CreateBitCast(b_.CreateShl(b_.CreateZExt(x, word), integer(word, 16)), real_type);
  if (level_.f16c) return b_.CreateFPExt(b_.CreateBitCast(x, with_lane(x->getType(), b_.getHalfTy())), real_type);
  Value* bits = b_.CreateZExt(x, word);
  Value* magnitude = b_.CreateAnd(bits, integer(word, 0x7fff));
  // The exponent is 112 less than f32's. A product puts that right for subnormals too; infinity and NaN have f32's highest exponent.
  Value* small = b_.CreateBitCast(b_.CreateShl(magnitude, integer(word, 13)), real_type);
  Value* scaled = b_.CreateBitCast(b_.CreateFMul(small, real(real_type, 0x1p112)), word);
  Value* special = b_.CreateICmpUGE(magnitude, integer(word, 0x7c00));
  scaled = b_.CreateOr(scaled, b_.CreateSelect(special, integer(word, 0x7f800000), integer(word, 0)));
  Value* sign = b_.CreateShl(b_.CreateAnd(bits, integer(word, 0x8000)), integer(word, 16));
  return b_.CreateBitCast(b_.CreateOr(scaled, sign), real_type);
}

// To nearest even. Not the CPU's conversion to bf16, which takes subnormals for zeros.
Value* Arith::f32_to_half(Type to, Value* x) {
  llvm::Type *half = with_lane(x->getType(), b_.getInt16Ty()), *word = with_lane(x->getType(), b_.getInt32Ty());
  if (to == Type::F16 && level_.f16c) return native_f32_to_f16(x);
  Value* bits = b_.CreateBitCast(x, word);
  Value* magnitude = b_.CreateAnd(bits, integer(word, 0x7fffffff));
  Value* is_nan = b_.CreateICmpUGT(magnitude, integer(word, 0x7f800000));
  const unsigned dropped = to == Type::BF16 ? 16 : 13;
  // Adding just below half a unit carries for what is above it, and with the last kept bit for a tie of an odd one.
  Value* last = b_.CreateAnd(b_.CreateLShr(magnitude, integer(word, dropped)), integer(word, 1));
  Value* rounded = b_.CreateAdd(b_.CreateAdd(magnitude, integer(word, (1u << (dropped - 1)) - 1)), last);
  Value* result = b_.CreateLShr(rounded, integer(word, dropped));
  if (to == Type::F16) {
    result = b_.CreateSub(result, integer(word, 112u << 10));  // the exponent
    // A subnormal: the sum with 1/2 has its units in the place of the last bit of an f32.
    llvm::Type* real_type = x->getType();
    Value* sum = b_.CreateFAdd(b_.CreateBitCast(magnitude, real_type), real(real_type, 0.5));
    Value* subnormal = b_.CreateSub(b_.CreateBitCast(sum, word), integer(word, 0x3f000000));
    result = b_.CreateSelect(b_.CreateICmpULT(magnitude, integer(word, 0x38800000)), subnormal, result);              // below 2^-14
    result = b_.CreateSelect(b_.CreateICmpUGE(magnitude, integer(word, 0x47800000)), integer(word, 0x7c00), result);  // from 2^16
  }
  result = b_.CreateSelect(is_nan, integer(word, to == Type::BF16 ? 0x7fc0 : 0x7e00), result);
  Value* sign = b_.CreateAnd(b_.CreateLShr(bits, integer(word, 16)), integer(word, 0x8000));
  return b_.CreateTrunc(b_.CreateOr(result, sign), half);
}

// By the instruction itself, eight lanes at a time: of LLVM's fptrunc its passes would make operations on halves.
Value* Arith::native_f32_to_f16(Value* x) {
  constexpr unsigned kPiece = 8;
  const auto convert = [&](Value* piece) {
    return b_.CreateIntrinsic(llvm::Intrinsic::x86_vcvtps2ph_256, llvm::ArrayRef<llvm::Type*>(),
                              {piece, b_.getInt32(0)});  // 0: to nearest even
  };
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(x->getType());
  if (vector == nullptr) {
    Value* piece =
        b_.CreateInsertElement(llvm::ConstantAggregateZero::get(llvm::FixedVectorType::get(x->getType(), kPiece)), x, std::uint64_t{0});
    return b_.CreateExtractElement(convert(piece), std::uint64_t{0});
  }
  const unsigned lanes = vector->getNumElements();
  std::vector<Value*> pieces;
  for (unsigned at = 0; at < lanes; at += kPiece) {
    std::vector<int> pick;
    for (unsigned l = at; l < at + kPiece; ++l) pick.push_back(static_cast<int>(std::min(l, lanes - 1)));
    pieces.push_back(convert(b_.CreateShuffleVector(x, pick)));
  }
  while (pieces.size() > 1) {  // joined in pairs; 32, 16, 8 or fewer lanes
    for (std::size_t i = 0; i < pieces.size() / 2; ++i) {
      const unsigned n = llvm::cast<llvm::FixedVectorType>(pieces[2 * i]->getType())->getNumElements();
      std::vector<int> all;
      for (unsigned l = 0; l < 2 * n; ++l) all.push_back(static_cast<int>(l));
      pieces[i] = b_.CreateShuffleVector(pieces[2 * i], pieces[2 * i + 1], all);
    }
    pieces.resize(pieces.size() / 2);
  }
  if (lanes >= kPiece) return pieces[0];
  std::vector<int> first;
  for (unsigned l = 0; l < lanes; ++l) first.push_back(static_cast<int>(l));
  return b_.CreateShuffleVector(pieces[0], first);
}

// Saturates; NaN gives 0. (LLVM's saturating conversions fall apart into scalars on vectors.)
Value* Arith::float_to_integer(Type to, Value* x, llvm::Type* result) {
  llvm::Type* type = x->getType();
  const bool is_signed = ir::is_signed(to);
  const int width = static_cast<int>(ir::bit_width(to));
  const double high = std::ldexp(1.0, is_signed ? width - 1 : width), low = is_signed ? -high : 0.0;
  Value* too_high = b_.CreateFCmpOGE(x, real(type, high));
  Value* inside = b_.CreateAnd(b_.CreateFCmpOGE(x, real(type, low)), b_.CreateFCmpOLT(x, real(type, high)));
  Value* safe = b_.CreateSelect(inside, x, real(type, 0));
  Value* converted = is_signed ? b_.CreateFPToSI(safe, result) : b_.CreateFPToUI(safe, result);
  const std::uint64_t max = is_signed ? ir::value_mask(to) >> 1 : ir::value_mask(to);
  Value* r = b_.CreateSelect(too_high, integer(result, max), converted);
  if (is_signed) r = b_.CreateSelect(b_.CreateFCmpOLT(x, real(type, low)), integer(result, max + 1), r);
  return r;
}

}  // namespace kiln::codegen::host
