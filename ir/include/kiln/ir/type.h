// Scalar types of the kernel language and their facts. Plain data, no state, thread-safe.
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace kiln::ir {

// Signedness is part of the type: i32 and u32 never mix without a cast.
// Void is the type of an operation without a result.
enum class Type : std::uint8_t { Void, Bool, I8, U8, I16, U16, I32, U32, I64, U64, F16, BF16, F32, F64, E4M3, E5M2 };
inline constexpr int kTypeCount = 16;

constexpr bool is_bool(Type t) { return t == Type::Bool; }
constexpr bool is_integer(Type t) { return t >= Type::I8 && t <= Type::U64; }
constexpr bool is_float(Type t) { return t >= Type::F16 && t <= Type::F64; }
// The floats of 16 bits, whose operations are made of those of f32 and f64.
constexpr bool is_half(Type t) { return t == Type::F16 || t == Type::BF16; }
// The floats of 8 bits, which are stored, moved and converted: nothing computes with them, so they are not among is_float's.
constexpr bool is_float8(Type t) { return t == Type::E4M3 || t == Type::E5M2; }
// Values are real numbers, written as decimals.
constexpr bool is_real(Type t) { return is_float(t) || is_float8(t); }
constexpr bool is_signed(Type t) { return t == Type::I8 || t == Type::I16 || t == Type::I32 || t == Type::I64; }
constexpr bool is_unsigned(Type t) { return is_integer(t) && !is_signed(t); }

// Width of a value in bits: 1 for bool, 0 for Void.
constexpr unsigned bit_width(Type t) {
  constexpr std::uint8_t table[kTypeCount] = {0, 1, 8, 8, 16, 16, 32, 32, 64, 64, 16, 16, 32, 64, 8, 8};
  return table[static_cast<int>(t)];
}
// Size of an element in memory in bytes: a bool is one byte holding 0 or 1.
constexpr unsigned byte_size(Type t) { return t == Type::Bool ? 1 : bit_width(t) / 8; }

// A mask of the low bit_width(t) bits. Values travel as u64 "bit patterns": the value's bits in the
// low end, every higher bit zero (also for negative signed values).
constexpr std::uint64_t value_mask(Type t) { return bit_width(t) >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bit_width(t)) - 1; }
constexpr std::int64_t sign_extend(Type t, std::uint64_t bits) {
  const unsigned shift = 64 - bit_width(t);
  return shift == 0 ? static_cast<std::int64_t>(bits) : static_cast<std::int64_t>(bits << shift) >> shift;
}

// "f32" and so on; "void" for Void.
std::string_view name(Type t);
// The type called `text`, or nothing.
std::optional<Type> parse_type(std::string_view text);

}  // namespace kiln::ir
