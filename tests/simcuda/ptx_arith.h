// How instruction families get from a type that is known when decoding to a function compiled for it.
#pragma once
#include <cstdint>
#include <type_traits>

#include "simcuda/ptx_decoder.h"
#include "simcuda/ptx_warp.h"

namespace kiln::simcuda::ptx {

// A value of T as register bits: zero-extended.
template <class T>
constexpr std::uint64_t bits(T v) {
  return static_cast<std::make_unsigned_t<T>>(v);
}

// f.template operator()<T>() for the C++ type of an integer type; null for others. Untyped ones are unsigned.
template <class F>
Execute for_integer(Type t, F f) {
  switch (t) {
    case Type::U16:
    case Type::B16: return f.template operator()<std::uint16_t>();
    case Type::S16: return f.template operator()<std::int16_t>();
    case Type::U32:
    case Type::B32: return f.template operator()<std::uint32_t>();
    case Type::S32: return f.template operator()<std::int32_t>();
    case Type::U64:
    case Type::B64: return f.template operator()<std::uint64_t>();
    case Type::S64: return f.template operator()<std::int64_t>();
    default: return nullptr;
  }
}

// Arithmetic that wraps, without the undefined behaviour of signed types.
template <class T>
constexpr T wrap_add(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) + static_cast<std::uint64_t>(b));
}
template <class T>
constexpr T wrap_sub(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) - static_cast<std::uint64_t>(b));
}
template <class T>
constexpr T wrap_mul(T a, T b) {
  return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
}
template <class T>
using Twice = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
template <class T>
constexpr T high(T a, T b) {
  return static_cast<T>((static_cast<Twice<T>>(a) * static_cast<Twice<T>>(b)) >> (8 * sizeof(T)));
}

}  // namespace kiln::simcuda::ptx
