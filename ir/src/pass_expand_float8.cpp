// e4m3 and e5m2 without instructions of their own: each conversion becomes operations on the bits of an f32 or f64, so that every device
// rounds alike, once. What stays for the backends moves 8 bits: constants, parameters, loads, stores, selects, locals, bit_cast.
#include "kiln/ir/expr.h"
#include "kiln/ir/floats.h"
#include "kiln/ir/passes.h"
#include "pass_expand.h"

namespace kiln::ir {
namespace {

// How a wide float is made, the f32 or f64 that a conversion comes from or goes to.
struct Wide {
  Type word;
  int width, fraction_bits, bias;
  std::uint64_t infinity;
};
constexpr Wide wide(Type t) {
  return t == Type::F64 ? Wide{Type::U64, 64, 52, 1023, 0x7ff0000000000000ull} : Wide{Type::U32, 32, 23, 127, 0x7f800000u};
}

// 2^exponent, and the bits of a number of the wide float.
constexpr double power(int exponent) { return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52); }

// The number as an f32, exact. Moved to the place of the f32's, the exponent is too small by the difference of the biases, for a subnormal
// too: a product puts that right.
Expr to_f32(Expr x) {
  const NarrowFormat f = narrow_format(x.type());
  const Wide w = wide(Type::F32);
  const Expr bits = x.as(Type::U8).cast(w.word);
  const Expr magnitude = bits & bits.bits(f.sign() - 1u);
  const Expr small = (magnitude << (w.fraction_bits - f.fraction_bits)).as(Type::F32);
  const Expr number = (small * power(w.bias - 1 + f.min_exponent)).as(w.word);
  const Expr last = magnitude.bits(f.infinity != 0 ? f.infinity : f.largest);
  const Expr is_nan = magnitude > last;
  Expr result = select(is_nan, bits.bits(0x7fc00000u), number);
  if (f.infinity != 0) {
    const Expr is_infinite = magnitude == last;
    result = select(is_infinite, bits.bits(w.infinity), result);
  }
  const Expr sign = (bits & bits.bits(f.sign())) << (w.width - f.width);
  return (result | sign).as(Type::F32);
}

// An f32 or f64 rounded to nearest even; beyond the largest finite number that one, NaN the one without a sign.
Expr from_wide(Expr x, Type to) {
  const NarrowFormat f = narrow_format(to);
  const Wide w = wide(x.type());
  const int dropped = w.fraction_bits - f.fraction_bits;
  const Expr bits = x.as(w.word);
  const Expr all = bits & bits.bits((std::uint64_t{1} << (w.width - 1)) - 1);
  const Expr is_nan = all > all.bits(w.infinity);
  const auto pattern = [&](double v) { return all.bits(float_bits(x.type(), v)); };
  const Expr magnitude = all.binary(Opcode::Min, pattern(narrow_value(to, f.largest)));
  // Just below half a unit carries for what is above it, and with the last kept bit for the tie of an odd one. Then the exponent.
  const Expr count = magnitude.bits(dropped), one = magnitude.bits(1);
  const Expr last = (magnitude >> count) & one;
  const Expr carried = (magnitude + magnitude.bits((std::uint64_t{1} << (dropped - 1)) - 1)) + last;
  const Expr normal = (carried >> count) - ((w.bias - 1 + f.min_exponent) << f.fraction_bits);
  // A subnormal: the units of this sum are those of the subnormal numbers, so that the sum rounds and its low bits count them.
  const double units = power(f.min_exponent - f.fraction_bits + w.fraction_bits);
  const Expr sum = (magnitude.as(x.type()) + units).as(w.word);
  const Expr subnormal = sum - pattern(units);
  const Expr is_normal = magnitude >= pattern(power(f.min_exponent));
  const Expr number = select(is_normal, normal, subnormal);
  const Expr sign_bit = bits.bits(f.sign());
  const Expr sign = (bits >> (w.width - f.width)) & sign_bit;
  const Expr signed_number = number | sign;
  return select(is_nan, bits.bits(f.nan), signed_number).cast(Type::U8).as(to);
}

Expr convert(Expr x, Type to) {
  const Type from = x.type();
  if (from == to) return x;
  if (is_float8(from)) {
    const Expr number = to_f32(x);
    return is_float8(to) ? from_wide(number, to) : to == Type::F32 ? number : number.cast(to);
  }
  return from_wide(is_half(from) ? x.cast(Type::F32) : x, to);
}

}  // namespace

void expand_float8(Kernel& kernel) {
  const auto wanted = [&](const Op& op) {
    return op.code == Opcode::Cast && (is_float8(op.type) || is_float8(kernel.op(op.operands[0]).type));
  };
  Expansion(kernel, wanted, [](Builder& b, const Op& op) { return convert(Expr(b, op.operands[0]), op.type).id(); }).run();
}

}  // namespace kiln::ir
