// The fused multiply-add of f64 where the CPU has none. Exact integer arithmetic, rounded once to the nearest even.
#include "host/arith.h"

namespace kiln::codegen::host {
namespace {

using llvm::Value;

constexpr unsigned kWide = 256;  // the aligned sum needs 171 bits

struct Unpacked {
  Value* mantissa;  // i64 in [2^52, 2^53)
  Value* exponent;  // i32: the value is mantissa * 2^exponent
  Value* sign;      // i1
};

Unpacked unpack(llvm::IRBuilder<>& b, Value* x) {
  Value* bits = b.CreateBitCast(x, b.getInt64Ty());
  Value* fraction = b.CreateAnd(bits, b.getInt64((std::uint64_t{1} << 52) - 1));
  Value* biased = b.CreateAnd(b.CreateTrunc(b.CreateLShr(bits, 52), b.getInt32Ty()), b.getInt32(0x7ff));
  Value* subnormal = b.CreateICmpEQ(biased, b.getInt32(0));
  Value* shift = b.CreateSub(b.CreateIntrinsic(llvm::Intrinsic::ctlz, {b.getInt64Ty()}, {fraction, b.getFalse()}), b.getInt64(11));
  // `fraction` 0 never gets here, but its shift must still be one.
  Value* moved = b.CreateShl(fraction, b.CreateAnd(shift, b.getInt64(63)));
  Value* mantissa = b.CreateSelect(subnormal, moved, b.CreateOr(fraction, b.getInt64(std::uint64_t{1} << 52)));
  Value* exponent = b.CreateSelect(subnormal, b.CreateSub(b.getInt32(-1074), b.CreateTrunc(shift, b.getInt32Ty())),
                                   b.CreateSub(biased, b.getInt32(1075)));
  return {mantissa, exponent, b.CreateICmpSLT(bits, b.getInt64(0))};
}

}  // namespace

llvm::Function* soft_fma_f64(llvm::Module& module) {
  if (llvm::Function* known = module.getFunction("kiln_fma_f64")) return known;
  llvm::LLVMContext& c = module.getContext();
  llvm::Type* real = llvm::Type::getDoubleTy(c);
  auto* function = llvm::Function::Create(llvm::FunctionType::get(real, {real, real, real}, false), llvm::Function::InternalLinkage,
                                          "kiln_fma_f64", module);
  function->addFnAttr(llvm::Attribute::NoUnwind);
  function->addFnAttr(llvm::Attribute::NoInline);
  function->setMemoryEffects(llvm::MemoryEffects::none());
  llvm::IRBuilder<> b(llvm::BasicBlock::Create(c, "entry", function));
  Value *x = function->getArg(0), *y = function->getArg(1), *z = function->getArg(2);
  llvm::Type* wide = b.getIntNTy(kWide);
  const auto block = [&](const char* name) { return llvm::BasicBlock::Create(c, name, function); };
  const auto finite = [&](Value* v) {
    return b.CreateFCmpOLT(b.CreateIntrinsic(llvm::Intrinsic::fabs, {real}, {v}), llvm::ConstantFP::getInfinity(real));
  };
  const auto is_zero = [&](Value* v) { return b.CreateFCmpOEQ(v, llvm::ConstantFP::get(real, 0.0)); };

  // Infinities and NaN, and a product that is a zero or an addend that is one: one rounding or none in the plain formula. An infinite
  // addend is the result even where the plain product would overflow.
  Value* factors_finite = b.CreateAnd(finite(x), finite(y));
  Value* all_finite = b.CreateAnd(factors_finite, finite(z));
  llvm::BasicBlock *plain = block("plain"), *check = block("check"), *exact = block("exact"), *sum_block = block("sum"),
                   *zero_block = block("zero");
  b.CreateCondBr(all_finite, check, plain);
  b.SetInsertPoint(check);
  b.CreateCondBr(b.CreateOr(b.CreateOr(is_zero(x), is_zero(y)), is_zero(z)), plain, exact);
  b.SetInsertPoint(plain);
  Value* product_plain = b.CreateFMul(x, y);
  Value* keep_addend = b.CreateAnd(factors_finite, b.CreateNot(finite(z)));
  // z + z is z, with a signalling NaN made quiet. A zero addend is added only to a zero product: it must not change the sign of one that
  // underflowed.
  Value* only_product = b.CreateAnd(is_zero(z), b.CreateNot(b.CreateOr(is_zero(x), is_zero(y))));
  Value* sum_plain = b.CreateSelect(only_product, product_plain, b.CreateFAdd(product_plain, z));
  b.CreateRet(b.CreateSelect(keep_addend, b.CreateFAdd(z, z), sum_plain));

  b.SetInsertPoint(exact);
  const Unpacked ux = unpack(b, x), uy = unpack(b, y), uz = unpack(b, z);
  Value* product = b.CreateMul(b.CreateZExt(ux.mantissa, wide), b.CreateZExt(uy.mantissa, wide));
  Value* product_exponent = b.CreateAdd(ux.exponent, uy.exponent);
  Value* product_sign = b.CreateXor(ux.sign, uy.sign);
  // Align on the lower of the two last bits. Beyond these distances the smaller operand only decides which way to round, and any nonzero
  // value of its sign below half a unit does that.
  Value* distance = b.CreateSub(uz.exponent, product_exponent);
  const auto clamp = [&](Value* v, int high) {
    Value* low = b.CreateIntrinsic(llvm::Intrinsic::smax, {b.getInt32Ty()}, {v, b.getInt32(0)});
    return b.CreateIntrinsic(llvm::Intrinsic::smin, {b.getInt32Ty()}, {low, b.getInt32(high)});
  };
  Value *up = clamp(distance, 110), *down = clamp(b.CreateNeg(distance), 64);
  Value* addend_aligned = b.CreateShl(b.CreateZExt(uz.mantissa, wide), b.CreateZExt(up, wide));
  Value* product_aligned = b.CreateShl(product, b.CreateZExt(down, wide));
  Value* addend_leads = b.CreateICmpSGE(distance, b.getInt32(0));
  Value* last = b.CreateSelect(addend_leads, b.CreateSub(uz.exponent, up), b.CreateSub(product_exponent, down));  // exponent of bit 0
  const auto signed_value = [&](Value* v, Value* sign) { return b.CreateSelect(sign, b.CreateNeg(v), v); };
  Value* sum = b.CreateAdd(signed_value(product_aligned, product_sign), signed_value(addend_aligned, uz.sign));
  Value* null = llvm::ConstantInt::get(wide, 0);
  b.CreateCondBr(b.CreateICmpEQ(sum, null), zero_block, sum_block);
  b.SetInsertPoint(zero_block);
  b.CreateRet(llvm::ConstantFP::get(real, 0.0));

  b.SetInsertPoint(sum_block);
  Value* negative = b.CreateICmpSLT(sum, null);
  Value* magnitude = signed_value(sum, negative);
  Value* zeros = b.CreateTrunc(b.CreateIntrinsic(llvm::Intrinsic::ctlz, {wide}, {magnitude, b.getFalse()}), b.getInt32Ty());
  Value* top = b.CreateAdd(b.CreateSub(b.getInt32(kWide - 1), zeros), last);
  Value* unit = b.CreateIntrinsic(llvm::Intrinsic::smax, {b.getInt32Ty()}, {b.CreateSub(top, b.getInt32(52)), b.getInt32(-1074)});
  Value* drop = b.CreateSub(unit, last);
  Value *right = b.CreateZExt(clamp(drop, 200), wide), *left = b.CreateZExt(clamp(b.CreateNeg(drop), 64), wide);
  Value* kept = b.CreateShl(b.CreateLShr(magnitude, right), left);
  Value* one = llvm::ConstantInt::get(wide, 1);
  Value* rest = b.CreateAnd(magnitude, b.CreateSub(b.CreateShl(one, right), one));
  Value* half = b.CreateLShr(b.CreateShl(one, right), one);
  Value* odd = b.CreateICmpNE(b.CreateAnd(kept, one), null);
  Value* dropped = b.CreateICmpSGT(drop, b.getInt32(0));
  Value* round_up = b.CreateAnd(dropped, b.CreateOr(b.CreateICmpUGT(rest, half), b.CreateAnd(b.CreateICmpEQ(rest, half), odd)));
  Value* mantissa = b.CreateTrunc(b.CreateAdd(kept, b.CreateZExt(round_up, wide)), b.getInt64Ty());
  // The leading one adds itself to the exponent field; so does a carry out of rounding, up to infinity.
  Value* field = b.CreateShl(b.CreateSExt(b.CreateAdd(unit, b.getInt32(1074)), b.getInt64Ty()), 52);
  Value* bits = b.CreateAdd(field, mantissa);
  Value* infinity = b.getInt64(std::uint64_t{0x7ff} << 52);
  // An exponent far too large would wrap in the field: compare the exponent first.
  Value* overflow = b.CreateOr(b.CreateICmpSGT(unit, b.getInt32(971)), b.CreateICmpUGE(bits, infinity));
  bits = b.CreateSelect(overflow, infinity, bits);
  bits = b.CreateOr(bits, b.CreateShl(b.CreateZExt(negative, b.getInt64Ty()), 63));
  b.CreateRet(b.CreateBitCast(bits, real));
  return function;
}

}  // namespace kiln::codegen::host
