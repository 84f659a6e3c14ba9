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

// A float of 8 or 16 bits on the host: stored, made of numbers and turned into them. f16 is IEEE's binary16, bf16 the upper half of an f32,
// e4m3 OCP's float of 4 exponent and 3 fraction bits without infinities, e5m2 the upper half of an f16. The number that one is made of is
// rounded once, to nearest even; beyond the range it is infinity in 16 bits, in 8 bits the largest finite number. Arithmetic on the host is
// float's.
template <ir::Type T>
class NarrowFloat {
 public:
  using kiln_narrow_float = NarrowFloat;
  using Bits = std::conditional_t<ir::is_float8(T), std::uint8_t, std::uint16_t>;

  constexpr NarrowFloat() = default;
  template <class N>
  requires(std::is_arithmetic_v<N> || requires { typename N::kiln_narrow_float; })
  explicit constexpr NarrowFloat(N number) {
    if constexpr (std::integral<N>) bits_ = static_cast<Bits>(ir::round_narrow(T, ir::odd_double(number)));
    else bits_ = static_cast<Bits>(ir::round_narrow(T, static_cast<double>(number)));
  }
  static constexpr NarrowFloat from_bits(Bits bits) {
    NarrowFloat f;
    f.bits_ = bits;
    return f;
  }
  constexpr Bits bits() const { return bits_; }
  constexpr operator float() const { return static_cast<float>(ir::narrow_value(T, bits_)); }
  friend constexpr bool operator==(NarrowFloat a, NarrowFloat b) { return static_cast<float>(a) == static_cast<float>(b); }

 private:
  Bits bits_ = 0;
};
using f16 = NarrowFloat<ir::Type::F16>;
using bf16 = NarrowFloat<ir::Type::BF16>;
using e4m3 = NarrowFloat<ir::Type::E4M3>;
using e5m2 = NarrowFloat<ir::Type::E5M2>;

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
inline constexpr ir::Type ir_type<e4m3> = ir::Type::E4M3;
template <>
inline constexpr ir::Type ir_type<e5m2> = ir::Type::E5M2;
template <>
inline constexpr ir::Type ir_type<f32> = ir::Type::F32;
template <>
inline constexpr ir::Type ir_type<f64> = ir::Type::F64;

template <class T>
concept IsElement = ir_type<T> != ir::Type::Void;
template <class T>
concept IsHalf = std::same_as<T, f16> || std::same_as<T, bf16>;
// The floats that are stored and converted only.
template <class T>
concept IsFloat8 = std::same_as<T, e4m3> || std::same_as<T, e5m2>;

}  // namespace kiln
