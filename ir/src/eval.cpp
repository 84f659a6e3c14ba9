#include "kiln/ir/eval.h"

#include <array>
#include <bit>
#include <cmath>
#include <concepts>
#include <limits>
#include <type_traits>

#include "kiln/ir/floats.h"
#include "text_names.h"

namespace kiln::ir {
namespace {

using Bits = std::uint64_t;
using Result = std::optional<Bits>;

// --- a bit pattern as a C++ value and back ---------------------------------------------------------------------------

template <class T>
T value_of(Bits bits) {
  if constexpr (std::same_as<T, float>) {
    return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
  } else if constexpr (std::same_as<T, double>) {
    return std::bit_cast<double>(bits);
  } else {
    return static_cast<T>(bits);
  }
}

template <class T>
Bits bits_of(T v) {
  if constexpr (std::same_as<T, float>) {
    return v != v ? 0x7fc00000u : std::bit_cast<std::uint32_t>(v);
  } else if constexpr (std::same_as<T, double>) {
    return v != v ? 0x7ff8000000000000u : std::bit_cast<std::uint64_t>(v);
  } else if constexpr (std::same_as<T, bool>) {
    return v;
  } else {
    return static_cast<std::make_unsigned_t<T>>(v);
  }
}

// --- integers ------------------------------------------------------------------------------------------------------------

template <class T>
T divide(T a, T b) {
  if (b == 0) return static_cast<T>(-1);
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));  // MIN / -1 is MIN
  }
  return a / b;
}

template <class T>
T remainder(T a, T b) {
  if (b == 0) return a;
  if constexpr (std::is_signed_v<T>) {
    if (b == -1) return 0;
  }
  return a % b;
}

template <class T>
T multiply_high(T a, T b) {
  if constexpr (sizeof(T) <= 4) {
    using Wide = std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>;
    return static_cast<T>((Wide{a} * Wide{b}) >> (8 * sizeof(T)));
  } else {
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>((Wide{a} * Wide{b}) >> 64);
  }
}

template <std::integral T>
Result arithmetic(Opcode code, const Bits* in) {
  using U = std::make_unsigned_t<T>;
  constexpr int width = 8 * sizeof(T);
  const T a = value_of<T>(in[0]), b = value_of<T>(in[1]);
  const U ua = static_cast<U>(a), ub = static_cast<U>(b);
  switch (code) {
    case Opcode::Add: return bits_of<U>(ua + ub);
    case Opcode::Sub: return bits_of<U>(ua - ub);
    case Opcode::Mul: return bits_of<U>(ua * ub);
    case Opcode::Div: return bits_of(divide(a, b));
    case Opcode::Rem: return bits_of(remainder(a, b));
    case Opcode::Min: return bits_of(a < b ? a : b);
    case Opcode::Max: return bits_of(a < b ? b : a);
    case Opcode::And: return bits_of<U>(ua & ub);
    case Opcode::Or: return bits_of<U>(ua | ub);
    case Opcode::Xor: return bits_of<U>(ua ^ ub);
    case Opcode::Shl: return ub >= width ? 0 : bits_of<U>(ua << ub);
    case Opcode::Shr: return ub >= width ? (a < 0 ? bits_of<T>(static_cast<T>(-1)) : 0) : bits_of<T>(static_cast<T>(a >> ub));
    case Opcode::MulHi: return bits_of(multiply_high(a, b));
    case Opcode::Neg: return bits_of<U>(0 - ua);
    case Opcode::Abs: return bits_of<U>(a < 0 ? 0 - ua : ua);
    case Opcode::Not: return bits_of<U>(~ua);
    case Opcode::Clz: return static_cast<Bits>(std::countl_zero(ua));
    case Opcode::Ctz: return static_cast<Bits>(std::countr_zero(ua));
    case Opcode::Popcount: return static_cast<Bits>(std::popcount(ua));
    case Opcode::Eq: return bits_of(a == b);
    case Opcode::Ne: return bits_of(a != b);
    case Opcode::Lt: return bits_of(a < b);
    case Opcode::Le: return bits_of(a <= b);
    case Opcode::Gt: return bits_of(a > b);
    case Opcode::Ge: return bits_of(a >= b);
    default: return std::nullopt;
  }
}

Result arithmetic_bool(Opcode code, const Bits* in) {
  const bool a = in[0] != 0, b = in[1] != 0;
  switch (code) {
    case Opcode::And: return a && b;
    case Opcode::Or: return a || b;
    case Opcode::Xor:
    case Opcode::Ne: return a != b;
    case Opcode::Eq: return a == b;
    case Opcode::Not: return !a;
    default: return std::nullopt;
  }
}

// --- floats --------------------------------------------------------------------------------------------------------------

// The smaller of two numbers with -0 < +0.
template <class T>
T smaller(T a, T b) {
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}
template <class T>
T larger(T a, T b) {
  if (a == b) return std::signbit(a) ? b : a;
  return a < b ? b : a;
}

template <std::floating_point T>
Result arithmetic(Opcode code, const Bits* in) {
  constexpr Bits sign = sizeof(T) == 4 ? Bits{0x80000000u} : Bits{1} << 63;
  const T a = value_of<T>(in[0]), b = value_of<T>(in[1]);
  switch (code) {
    case Opcode::Add: return bits_of(a + b);
    case Opcode::Sub: return bits_of(a - b);
    case Opcode::Mul: return bits_of(a * b);
    case Opcode::Div: return bits_of(a / b);
    case Opcode::Min: return bits_of(a != a ? b : b != b ? a : smaller(a, b));
    case Opcode::Max: return bits_of(a != a ? b : b != b ? a : larger(a, b));
    case Opcode::MinNan: return bits_of(a != a ? a : b != b ? b : smaller(a, b));
    case Opcode::MaxNan: return bits_of(a != a ? a : b != b ? b : larger(a, b));
    case Opcode::CopySign: return (in[0] & ~sign) | (in[1] & sign);
    case Opcode::Neg: return in[0] ^ sign;
    case Opcode::Abs: return in[0] & ~sign;
    case Opcode::Sqrt: return bits_of(std::sqrt(a));
    case Opcode::Floor: return bits_of(std::floor(a));
    case Opcode::Ceil: return bits_of(std::ceil(a));
    case Opcode::Trunc: return bits_of(std::trunc(a));
    case Opcode::RoundEven: return bits_of(std::nearbyint(a));
    case Opcode::Fma: return bits_of(std::fma(a, b, value_of<T>(in[2])));
    case Opcode::Eq: return bits_of(a == b);
    case Opcode::Ne: return bits_of(a != b);
    case Opcode::Lt: return bits_of(a < b);
    case Opcode::Le: return bits_of(a <= b);
    case Opcode::Gt: return bits_of(a > b);
    case Opcode::Ge: return bits_of(a >= b);
    default: return std::nullopt;
  }
}

// --- f16 and bf16 --------------------------------------------------------------------------------------------------------
// Computed in double and rounded once. A sum, product, quotient or root of two of them, rounded to the 53 bits of a double and then to 11
// or 8, is the exact result rounded once; where more could be lost on the way to a double, the double is made odd.

// On the way from a longer number to a shorter: the last bit says that something was cut off, so that the next rounding sees it.
double make_odd(double nearest, bool below, bool above) {  // the exact number is below or above the nearest double
  if (!below && !above) return nearest;
  const auto bits = std::bit_cast<std::uint64_t>(nearest);
  if ((bits & 1) != 0) return nearest;
  return std::bit_cast<double>(std::signbit(nearest) == below ? bits + 1 : bits - 1);
}

// a + b; both finite sums of halves' products and halves, so that nothing overflows.
double odd_sum(double a, double b) {
  const double sum = a + b, back = sum - a;
  const double error = (a - (sum - back)) + (b - back);
  return make_odd(sum, error < 0, error > 0);
}

Result arithmetic_half(Opcode code, Type t, const Bits* in) {
  constexpr Bits sign = 0x8000;
  const auto operand = [&](int i) { return narrow_value(t, static_cast<std::uint16_t>(in[i])); };
  switch (code) {
    case Opcode::Neg: return in[0] ^ sign;
    case Opcode::Abs: return in[0] & ~sign;
    case Opcode::CopySign: return (in[0] & ~sign) | (in[1] & sign);
    case Opcode::Fma: return round_narrow(t, odd_sum(operand(0) * operand(1), operand(2)));
    default: break;
  }
  const Bits wide[] = {std::bit_cast<Bits>(operand(0)), std::bit_cast<Bits>(operand(1))};
  const Result r = arithmetic<double>(code, wide);
  if (!r || info(code).form == Form::Compare) return r;
  return round_narrow(t, std::bit_cast<double>(*r));
}

// --- conversions -----------------------------------------------------------------------------------------------------------

template <class To, class From>
To saturate(From v) {
  if (v != v) return 0;
  // 2^digits is exact in From; from there on, and from MIN down, the range of To ends.
  const From top = std::ldexp(From{1}, std::numeric_limits<To>::digits);
  if (v >= top) return std::numeric_limits<To>::max();
  const From bottom = std::is_signed_v<To> ? -top : From{0};
  if (v <= bottom) return std::numeric_limits<To>::min();
  return static_cast<To>(v);
}

template <class To, class From>
To convert(From v) {
  if constexpr (std::same_as<To, bool>) {
    return v != 0;
  } else if constexpr (std::is_floating_point_v<From> && std::is_integral_v<To>) {
    return saturate<To>(v);
  } else {
    return static_cast<To>(v);  // between integers it wraps; to a float it rounds once
  }
}

// Calls f with a value of the C++ type of t.
template <class F>
Result with_type(Type t, F&& f) {
  switch (t) {
    case Type::Bool: return f(bool{});
    case Type::I8: return f(std::int8_t{});
    case Type::U8: return f(std::uint8_t{});
    case Type::I16: return f(std::int16_t{});
    case Type::U16: return f(std::uint16_t{});
    case Type::I32: return f(std::int32_t{});
    case Type::U32: return f(std::uint32_t{});
    case Type::I64: return f(std::int64_t{});
    case Type::U64: return f(std::uint64_t{});
    case Type::F32: return f(float{});
    case Type::F64: return f(double{});
    default: return std::nullopt;
  }
}

Result cast(Type to, Type from, Bits bits) {
  if (!converts(Opcode::Cast, from, to)) return std::nullopt;
  if (is_float8(from) && to == from) return bits;
  if (is_narrow(from)) {  // exact in double
    const double v = narrow_value(from, static_cast<std::uint16_t>(bits));
    return is_narrow(to) ? round_narrow(to, v) : cast(to, Type::F64, std::bit_cast<Bits>(v));
  }
  return with_type(from, [&](auto source) -> Result {
    using From = decltype(source);
    if (is_narrow(to)) {
      const From v = value_of<From>(bits);
      if constexpr (std::integral<From>)
        return round_narrow(to, odd_double(std::conditional_t<std::is_signed_v<From>, std::int64_t, std::uint64_t>{v}));
      else return round_narrow(to, static_cast<double>(v));
    }
    return with_type(to, [&](auto target) -> Result {
      using To = decltype(target);
      return bits_of<To>(convert<To, From>(value_of<From>(bits)));
    });
  });
}

constexpr Opcode operation(Combine how) {
  constexpr Opcode table[kCombineCount] = {Opcode::Add, Opcode::Mul, Opcode::Min, Opcode::Max, Opcode::And, Opcode::Or, Opcode::Xor};
  return table[static_cast<int>(how)];
}

}  // namespace

std::optional<std::uint64_t> evaluate(Opcode code, Type result_type, Type operand_type, std::span<const std::uint64_t> operands) {
  const OpInfo& row = info(code);
  if (operand_type == Type::Void || (row.types & type_class(operand_type)) == 0) return std::nullopt;
  switch (row.form) {
    case Form::Unary:
    case Form::Binary:
    case Form::Ternary:
    case Form::Compare:
    case Form::Select:
    case Form::Convert: break;
    default: return std::nullopt;
  }
  if (row.effect != Effect::None || operands.size() != fixed_operands(row.form)) return std::nullopt;
  if (code == Opcode::Select) return operands[0] != 0 ? operands[1] : operands[2];
  if (code == Opcode::Cast) return cast(result_type, operand_type, operands[0]);
  if (code == Opcode::BitCast) return converts(code, operand_type, result_type) ? Result(operands[0]) : std::nullopt;
  std::array<Bits, 3> in{};
  for (std::size_t i = 0; i < operands.size(); ++i) in[i] = operands[i];
  switch (operand_type) {
    case Type::Bool: return arithmetic_bool(code, in.data());
    case Type::I8: return arithmetic<std::int8_t>(code, in.data());
    case Type::U8: return arithmetic<std::uint8_t>(code, in.data());
    case Type::I16: return arithmetic<std::int16_t>(code, in.data());
    case Type::U16: return arithmetic<std::uint16_t>(code, in.data());
    case Type::I32: return arithmetic<std::int32_t>(code, in.data());
    case Type::U32: return arithmetic<std::uint32_t>(code, in.data());
    case Type::I64: return arithmetic<std::int64_t>(code, in.data());
    case Type::U64: return arithmetic<std::uint64_t>(code, in.data());
    case Type::F16:
    case Type::BF16: return arithmetic_half(code, operand_type, in.data());
    case Type::F32: return arithmetic<float>(code, in.data());
    case Type::F64: return arithmetic<double>(code, in.data());
    default: return std::nullopt;
  }
}

std::uint64_t identity(Combine how, Type type) {
  const Bits all = value_mask(type);
  switch (how) {
    case Combine::Add: return is_float(type) ? (all >> 1) + 1 : 0;  // -0
    case Combine::Mul: return is_float(type) ? float_bits(type, 1) : 1;
    case Combine::Min:
    case Combine::Max: {
      if (is_float(type)) return float_bits(type, std::numeric_limits<double>::quiet_NaN());
      const Bits top = is_signed(type) ? all >> 1 : all;
      return how == Combine::Min ? top : all & ~top;
    }
    case Combine::And: return all;
    case Combine::Or:
    case Combine::Xor: return 0;
  }
  return 0;
}

std::uint64_t combine(Combine how, Type type, std::uint64_t a, std::uint64_t b) {
  const std::array<Bits, 2> operands{a, b};
  return evaluate(operation(how), type, type, operands).value_or(0);
}

}  // namespace kiln::ir
