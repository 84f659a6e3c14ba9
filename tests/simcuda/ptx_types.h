// The types and state spaces of PTX.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace kiln::simcuda::ptx {

enum class Type : std::uint8_t {
  None,
  Pred,
  B8,
  B16,
  B32,
  B64,
  B128,
  U8,
  U16,
  U32,
  U64,
  S8,
  S16,
  S32,
  S64,
  F16,
  BF16,
  F32,
  F64,
  F16x2,
  BF16x2,
  F32x2,
  U16x2,
  S16x2,
  TF32,
  E4M3x2,
  E5M2x2,
};

enum class Space : std::uint8_t { Generic, Global, Const, Shared, Local, Param, Register };

std::optional<Type> type_by_name(std::string_view name);  // "u32"; without the dot
std::string_view name_of(Type type);
std::string_view name_of(Space space);

constexpr unsigned bits_of(Type t) {
  switch (t) {
    case Type::None: return 0;
    case Type::Pred: return 1;
    case Type::B8:
    case Type::U8:
    case Type::S8: return 8;
    case Type::B16:
    case Type::U16:
    case Type::S16:
    case Type::F16:
    case Type::BF16:
    case Type::E4M3x2:
    case Type::E5M2x2: return 16;
    case Type::B64:
    case Type::U64:
    case Type::S64:
    case Type::F64:
    case Type::F32x2: return 64;
    case Type::B128: return 128;
    default: return 32;
  }
}
constexpr unsigned bytes_of(Type t) { return (bits_of(t) + 7) / 8; }
constexpr bool is_signed(Type t) { return t == Type::S8 || t == Type::S16 || t == Type::S32 || t == Type::S64; }
constexpr bool is_unsigned(Type t) { return t == Type::U8 || t == Type::U16 || t == Type::U32 || t == Type::U64; }
constexpr bool is_int(Type t) { return is_signed(t) || is_unsigned(t); }
constexpr bool is_untyped(Type t) { return t >= Type::B8 && t <= Type::B128; }
constexpr bool is_float(Type t) { return t == Type::F16 || t == Type::BF16 || t == Type::F32 || t == Type::F64; }
constexpr bool is_packed(Type t) {
  return t == Type::F16x2 || t == Type::BF16x2 || t == Type::F32x2 || t == Type::U16x2 || t == Type::S16x2 || t == Type::E4M3x2 ||
         t == Type::E5M2x2;
}

// Whether a register declared as `have` may stand where an instruction's operand is of type `want`, sizes aside: untyped goes with
// everything, integers with integers, floats and packed types only with their own.
constexpr bool alike(Type have, Type want) {
  if (have == want) return true;
  if (have == Type::Pred || want == Type::Pred) return false;
  return is_untyped(have) || is_untyped(want) || (is_int(have) && is_int(want));
}
constexpr bool compatible(Type have, Type want) { return bits_of(have) == bits_of(want) && alike(have, want); }

}  // namespace kiln::simcuda::ptx
