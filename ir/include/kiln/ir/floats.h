// Bits of the float types as numbers, and numbers as bits of the 16-bit ones, rounded once. Plain functions, thread-safe.
#pragma once
#include <bit>
#include <concepts>
#include <cstdint>

#include "kiln/ir/type.h"

namespace kiln::ir {

// How f16 and bf16 are made: sign, exponent, fraction, from the top.
struct HalfFormat {
  int fraction_bits;
  int min_exponent;  // of the normal numbers
  std::uint16_t infinity, nan;
};
constexpr HalfFormat half_format(Type t) {
  return t == Type::F16 ? HalfFormat{10, -14, 0x7c00, 0x7e00} : HalfFormat{7, -126, 0x7f80, 0x7fc0};
}

// The f16 or bf16 nearest to `value`; of two equally near the one with an even fraction. Beyond the range infinity, below it subnormal or
// zero; NaN is the quiet one without a sign.
constexpr std::uint16_t round_to_half(Type t, double value) {
  const HalfFormat f = half_format(t);
  if (value != value) return f.nan;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1023;
  if (exponent == 1024) return static_cast<std::uint16_t>(sign | f.infinity);
  if (exponent == -1023) return sign;  // less than any half of ours
  const std::uint64_t mantissa = (bits & 0xfffffffffffffull) | std::uint64_t{1} << 52;
  const int scale = exponent > f.min_exponent ? exponent : f.min_exponent;
  const int dropped = 52 - f.fraction_bits + scale - exponent;
  if (dropped > 54) return sign;  // less than a half of the least
  const std::uint64_t rest = mantissa & ((std::uint64_t{1} << dropped) - 1), tie = std::uint64_t{1} << (dropped - 1);
  std::uint64_t kept = mantissa >> dropped;
  if (rest > tie || (rest == tie && (kept & 1) != 0)) ++kept;
  const std::uint64_t magnitude =
      (static_cast<std::uint64_t>(scale - f.min_exponent) << f.fraction_bits) + kept;  // carries rise into the exponent
  return static_cast<std::uint16_t>(sign | (magnitude > f.infinity ? f.infinity : magnitude));
}

// A whole number as a double on its way to a half: rounded to odd where it has more than 53 bits, so that the next rounding sees on which
// side of a tie it was.
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

// The number that an f16 or bf16 is. A NaN is some NaN.
constexpr double half_value(Type t, std::uint16_t bits) {
  const HalfFormat f = half_format(t);
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x8000) << 48;
  const int magnitude = bits & 0x7fff;
  if (magnitude > f.infinity) return std::bit_cast<double>(sign | 0x7ff8000000000000ull);
  if (magnitude == f.infinity) return std::bit_cast<double>(sign | 0x7ff0000000000000ull);
  const int field = magnitude >> f.fraction_bits;
  if (field == 0) {  // a multiple of the least one
    const double least = std::bit_cast<double>(static_cast<std::uint64_t>(f.min_exponent - f.fraction_bits + 1023) << 52);
    return sign != 0 ? -(magnitude * least) : magnitude * least;
  }
  const std::uint64_t exponent = static_cast<std::uint64_t>(field - 1 + f.min_exponent + 1023) << 52;
  const std::uint64_t fraction = static_cast<std::uint64_t>(magnitude & ((1 << f.fraction_bits) - 1)) << (52 - f.fraction_bits);
  return std::bit_cast<double>(sign | exponent | fraction);
}

// The number that the bits of a value of a float type are.
constexpr double float_value(Type t, std::uint64_t bits) {
  if (is_half(t)) return half_value(t, static_cast<std::uint16_t>(bits));
  if (t == Type::F32) return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
  return std::bit_cast<double>(bits);
}
// And back: the value of a float type nearest to `value`.
constexpr std::uint64_t float_bits(Type t, double value) {
  if (is_half(t)) return round_to_half(t, value);
  if (t == Type::F32) return std::bit_cast<std::uint32_t>(static_cast<float>(value));
  return std::bit_cast<std::uint64_t>(value);
}

constexpr bool is_nan(Type t, std::uint64_t bits) {
  if (!is_float(t)) return false;
  const double v = float_value(t, bits);
  return v != v;
}

// Bits of the fraction, the leading one included: every whole number of so many bits is exact.
constexpr int precision(Type t) { return t == Type::F64 ? 53 : t == Type::F32 ? 24 : half_format(t).fraction_bits + 1; }

}  // namespace kiln::ir
