// The arithmetic of PTX instructions on bit patterns. Private to the PTX machine. NaN results are the canonical NaN of the ISA, so that
// code which relies on the bits of an arithmetic NaN is found out.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

namespace kiln::test::ptx {

using Bits = std::uint64_t;

struct Kind {
  char letter = 'b';  // b, u, s, f, p (predicate)
  unsigned width = 32;
  bool is_float() const { return letter == 'f'; }
  bool is_signed() const { return letter == 's'; }
  Bits mask() const { return letter == 'p' ? 1 : width == 64 ? ~Bits{0} : (Bits{1} << width) - 1; }
};

inline Kind kind(const std::string& type) {
  if (type == "pred") return {'p', 1};
  return {type[0], static_cast<unsigned>(std::stoul(type.substr(1)))};
}
inline bool is_kind(const std::string& part) {
  return part == "pred" || (part.size() >= 2 && std::string("busf").find(part[0]) != std::string::npos && part[1] >= '1' && part[1] <= '9');
}

inline std::int64_t as_signed(Kind k, Bits v) { return static_cast<std::int64_t>(v << (64 - k.width)) >> (64 - k.width); }
inline double as_double(Kind k, Bits v) {
  return k.width == 32 ? std::bit_cast<float>(static_cast<std::uint32_t>(v)) : std::bit_cast<double>(v);
}
inline Bits nan_bits(Kind k) { return k.width == 32 ? 0x7fffffffu : 0x7fffffffffffffffull; }
inline bool is_nan(Kind k, Bits v) { return std::isnan(as_double(k, v)); }
inline Bits from_float(float v) { return std::isnan(v) ? nan_bits({'f', 32}) : std::bit_cast<std::uint32_t>(v); }
inline Bits from_double(double v) { return std::isnan(v) ? nan_bits({'f', 64}) : std::bit_cast<std::uint64_t>(v); }
inline float as_float(Bits v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v)); }
inline Bits flushed(Bits v) { return (v & 0x7f800000u) == 0 ? v & 0x80000000u : v; }

// One rounding in the type of the instruction.
template <class F, class D>
Bits floats(Kind k, F on_float, D on_double, Bits a, Bits b = 0, Bits c = 0) {
  if (k.width == 32) return from_float(on_float(as_float(a), as_float(b), as_float(c)));
  return from_double(on_double(std::bit_cast<double>(a), std::bit_cast<double>(b), std::bit_cast<double>(c)));
}

inline Bits float_min_max(Kind k, bool max, bool nan_wins, Bits a, Bits b) {
  const bool an = is_nan(k, a), bn = is_nan(k, b);
  if ((an && bn) || (nan_wins && (an || bn))) return nan_bits(k);
  if (an || bn) return an ? b : a;
  const double x = as_double(k, a), y = as_double(k, b);
  if (x == y) return (std::signbit(x) != 0) != max ? a : b;  // -0 < +0
  return (x < y) != max ? a : b;
}

inline Bits float_to_int(Kind to, Kind from, double v) {
  if (std::isnan(v)) return from.width == 64 && to.width == 64 ? Bits{1} << 63 : 0;
  const double low = to.is_signed() ? -std::ldexp(1.0, static_cast<int>(to.width) - 1) : 0;
  const double high = std::ldexp(1.0, static_cast<int>(to.width) - (to.is_signed() ? 1 : 0));  // exclusive
  if (v < low) v = low;
  if (v >= high) return (to.is_signed() ? to.mask() >> 1 : to.mask());
  if (to.is_signed()) return static_cast<Bits>(static_cast<std::int64_t>(v)) & to.mask();
  return static_cast<Bits>(v) & to.mask();
}

inline Bits clamp_shift(Kind k, bool left, Bits v, Bits count) {
  const Bits n = count & 0xffffffffu;
  v &= k.mask();
  if (left) return n >= k.width ? 0 : (v << n) & k.mask();
  if (k.is_signed()) return static_cast<Bits>(as_signed(k, v) >> (n >= k.width ? k.width - 1 : n)) & k.mask();
  return n >= k.width ? 0 : v >> n;
}

inline Bits multiply_high(Kind k, Bits a, Bits b) {
  if (k.is_signed()) {
    const __int128 p = static_cast<__int128>(as_signed(k, a)) * as_signed(k, b);
    return static_cast<Bits>(p >> k.width) & k.mask();
  }
  const unsigned __int128 p = static_cast<unsigned __int128>(a & k.mask()) * (b & k.mask());
  return static_cast<Bits>(p >> k.width) & k.mask();
}

// Division by zero and MIN / -1 have no value in PTX: garbage that a program must not let through.
inline Bits divide(Kind k, bool rem, Bits a, Bits b) {
  constexpr Bits kGarbage = 0x5eedf00d5eedf00dull;
  a &= k.mask();
  b &= k.mask();
  if (b == 0) return kGarbage & k.mask();
  if (k.is_signed()) {
    const std::int64_t x = as_signed(k, a), y = as_signed(k, b);
    if (y == -1 && a == (Bits{1} << (k.width - 1))) return kGarbage & k.mask();
    return static_cast<Bits>(rem ? x % y : x / y) & k.mask();
  }
  return rem ? a % b : a / b;
}

}  // namespace kiln::test::ptx
