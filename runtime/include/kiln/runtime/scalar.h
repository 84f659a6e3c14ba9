// Host types of kernel elements: short names and their IR types.
#pragma once
#include <concepts>
#include <cstdint>
#include <type_traits>

#include "kiln/ir/floats.h"

namespace kiln {

using i8 = std::int8_t;
using u8 = std::uint8_t;
using i16 = std::int16_t;
using u16 = std::uint16_t;
using i32 = std::int32_t;
using u32 = std::uint32_t;
using i64 = std::int64_t;
using u64 = std::uint64_t;
using f32 = float;
using f64 = double;

// A float of 16 bits on the host: stored, made of numbers and turned into them; f16 is IEEE's binary16, bf16 the upper half of an f32. The
// number that it is made of is rounded once, to nearest even. Arithmetic on the host is float's.
template <ir::Type T>
class HalfFloat {
 public:
  constexpr HalfFloat() = default;
  template <class N>
  requires std::is_arithmetic_v<N>
  explicit constexpr HalfFloat(N number) {
    if constexpr (std::integral<N>) bits_ = ir::round_to_half(T, ir::odd_double(number));
    else bits_ = ir::round_to_half(T, static_cast<double>(number));
  }
  static constexpr HalfFloat from_bits(std::uint16_t bits) {
    HalfFloat h;
    h.bits_ = bits;
    return h;
  }
  constexpr std::uint16_t bits() const { return bits_; }
  constexpr operator float() const { return static_cast<float>(ir::half_value(T, bits_)); }
  friend constexpr bool operator==(HalfFloat a, HalfFloat b) { return static_cast<float>(a) == static_cast<float>(b); }

 private:
  std::uint16_t bits_ = 0;
};
using f16 = HalfFloat<ir::Type::F16>;
using bf16 = HalfFloat<ir::Type::BF16>;

template <class T>
inline constexpr ir::Type ir_type = ir::Type::Void;
template <>
inline constexpr ir::Type ir_type<bool> = ir::Type::Bool;
template <>
inline constexpr ir::Type ir_type<i8> = ir::Type::I8;
template <>
inline constexpr ir::Type ir_type<u8> = ir::Type::U8;
template <>
inline constexpr ir::Type ir_type<i16> = ir::Type::I16;
template <>
inline constexpr ir::Type ir_type<u16> = ir::Type::U16;
template <>
inline constexpr ir::Type ir_type<i32> = ir::Type::I32;
template <>
inline constexpr ir::Type ir_type<u32> = ir::Type::U32;
template <>
inline constexpr ir::Type ir_type<i64> = ir::Type::I64;
template <>
inline constexpr ir::Type ir_type<u64> = ir::Type::U64;
template <>
inline constexpr ir::Type ir_type<f16> = ir::Type::F16;
template <>
inline constexpr ir::Type ir_type<bf16> = ir::Type::BF16;
template <>
inline constexpr ir::Type ir_type<f32> = ir::Type::F32;
template <>
inline constexpr ir::Type ir_type<f64> = ir::Type::F64;

template <class T>
concept IsElement = ir_type<T> != ir::Type::Void;
template <class T>
concept IsHalf = std::same_as<T, f16> || std::same_as<T, bf16>;

}  // namespace kiln
