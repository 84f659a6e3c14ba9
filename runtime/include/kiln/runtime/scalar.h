// Host types of kernel elements: short names and their IR types.
#pragma once
#include <cstdint>

#include "kiln/ir/type.h"

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
inline constexpr ir::Type ir_type<f32> = ir::Type::F32;
template <>
inline constexpr ir::Type ir_type<f64> = ir::Type::F64;

template <class T>
concept IsElement = ir_type<T> != ir::Type::Void;

}  // namespace kiln
