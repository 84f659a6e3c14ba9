// Bits of the float types as numbers, and numbers as bits of the narrow ones, rounded once. Plain functions, thread-safe.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>

#include "kiln/ir/type.h"

namespace kiln::ir {

// How the floats of 8 and 16 bits are made: sign, exponent, fraction, from the top.
struct NarrowFormat {
  int width;
  int fraction_bits;
  int min_exponent;        // of the normal numbers
  std::uint16_t largest;   // finite
  std::uint16_t overflow;  // what is beyond it becomes: infinity, or the largest itself
  std::uint16_t infinity;  // 0 where there is none
  std::uint16_t nan;
  constexpr std::uint16_t sign() const { return static_cast<std::uint16_t>(1u << (width - 1)); }
};
constexpr NarrowFormat narrow_format(Type t) {
  switch (t) {
    case Type::F16: return {16, 10, -14, 0x7bff, 0x7c00, 0x7c00, 0x7e00};
    case Type::BF16: return {16, 7, -126, 0x7f7f, 0x7f80, 0x7f80, 0x7fc0};
    case Type::E4M3: return {8, 3, -6, 0x7e, 0x7e, 0, 0x7f};
    default: return {8, 2, -14, 0x7b, 0x7b, 0x7c, 0x7f};
  }
}
// Neither infinite nor NaN.
constexpr bool is_finite(double value) { return (std::bit_cast<std::uint64_t>(value) >> 52 & 0x7ff) != 0x7ff; }
constexpr bool is_narrow(Type t) { return is_half(t) || is_float8(t); }

// The magnitude of the number of a narrow float type that is nearest to a finite one, as if its exponents had no end: above `largest` where
// they have.
constexpr std::uint64_t nearest_magnitude(const NarrowFormat& f, double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent == -1023) return 0;  // less than any of ours
  const std::uint64_t mantissa = (bits & 0xfffffffffffffull) | std::uint64_t{1} << 52;
  const int scale = exponent > f.min_exponent ? exponent : f.min_exponent;
  const int dropped = 52 - f.fraction_bits + scale - exponent;
  if (dropped > 54) return 0;  // less than a half of the least
  const std::uint64_t rest = mantissa & ((std::uint64_t{1} << dropped) - 1), tie = std::uint64_t{1} << (dropped - 1);
  std::uint64_t kept = mantissa >> dropped;
  if (rest > tie || (rest == tie && (kept & 1) != 0)) ++kept;
  return (static_cast<std::uint64_t>(scale - f.min_exponent) << f.fraction_bits) + kept;  // carries rise into the exponent
}

// The f16, bf16, e4m3 or e5m2 nearest to `value`; of two equally near the one with an even fraction. Below the range it is subnormal or
// zero; beyond it infinity in 16 bits, and in 8 bits the largest finite number. NaN is the quiet one without a sign.
constexpr std::uint16_t round_narrow(Type t, double value) {
  const NarrowFormat f = narrow_format(t);
  if (value != value) return f.nan;
  const std::uint16_t sign = std::bit_cast<std::uint64_t>(value) >> 63 != 0 ? f.sign() : 0;
  if (!is_finite(value)) return sign | f.overflow;
  const std::uint64_t magnitude = nearest_magnitude(f, value);
  return static_cast<std::uint16_t>(sign | (magnitude > f.largest ? f.overflow : magnitude));
}

// A whole number as a double on its way to a narrow float: rounded to odd where it has more than 53 bits, so that the next rounding sees on
// which side of a tie it was.
constexpr double odd_double(std::uint64_t v) {
  constexpr std::uint64_t low = 0x7ff;
  if (v >> 53 == 0) return static_cast<double>(v);
  return static_cast<double>((v & ~low) | ((v & low) != 0 ? low + 1 : 0));
}
template <std::signed_integral I>
constexpr double odd_double(I v) {
  if (v < 0) return -odd_double(0 - static_cast<std::uint64_t>(v));
  return odd_double(static_cast<std::uint64_t>(v));
}

// The number that an f16, bf16, e4m3 or e5m2 is. A NaN is some NaN.
constexpr double narrow_value(Type t, std::uint16_t bits) {
  const NarrowFormat f = narrow_format(t);
  const std::uint64_t sign = (bits & f.sign()) != 0 ? std::uint64_t{1} << 63 : 0;
  const int magnitude = bits & (f.sign() - 1);
  if (magnitude > f.largest) return std::bit_cast<double>(sign | (magnitude == f.infinity ? 0x7ff0000000000000ull : 0x7ff8000000000000ull));
  const int field = magnitude >> f.fraction_bits;
  if (field == 0) {  // a multiple of the least one
    const double least = std::bit_cast<double>(static_cast<std::uint64_t>(f.min_exponent - f.fraction_bits + 1023) << 52);
    return sign != 0 ? -(magnitude * least) : magnitude * least;
  }
  const std::uint64_t exponent = static_cast<std::uint64_t>(field - 1 + f.min_exponent + 1023) << 52;
  const std::uint64_t fraction = static_cast<std::uint64_t>(magnitude & ((1 << f.fraction_bits) - 1)) << (52 - f.fraction_bits);
  return std::bit_cast<double>(sign | exponent | fraction);
}

// The number that the bits of a value of a float type, of any width, are.
constexpr double float_value(Type t, std::uint64_t bits) {
  if (is_narrow(t)) return narrow_value(t, static_cast<std::uint16_t>(bits));
  if (t == Type::F32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return std::bit_cast<double>(bits);
}
// And back: the value of a float type nearest to `value`.
constexpr std::uint64_t float_bits(Type t, double value) {
  if (is_narrow(t)) return round_narrow(t, value);
  if (t == Type::F32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

// Whether a number is beyond the type's range: what is nearest to it is none of the type's numbers. Infinity is, where the type has none to
// convert it to.
constexpr bool overflows(Type t, double value) {
  if (value != value) return false;
  if (!is_finite(value)) return is_float8(t);
  if (is_narrow(t)) return nearest_magnitude(narrow_format(t), value) > narrow_format(t).largest;
  if (t != Type::F32) return false;
  return !is_finite(static_cast<float>(value));
}

constexpr bool is_nan(Type t, std::uint64_t bits) {
  if (!is_real(t)) return false;
  const double v = float_value(t, bits);
  return v != v;
}

// Bits of the fraction, the leading one included: every whole number of so many bits is exact.
constexpr int precision(Type t) { return t == Type::F64 ? 53 : t == Type::F32 ? 24 : narrow_format(t).fraction_bits + 1; }

}  // namespace kiln::ir
