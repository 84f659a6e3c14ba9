// Floating point values of PTX as bits: conversions between formats with every rounding, NaN and subnormal rules. Arithmetic NaN results
// are the canonical NaN of the ISA (all bits of exponent and fraction set), so that code which relies on the bits of a NaN is found out.
#pragma once
#include <bit>
#include <cmath>
#include <cstdint>

#include "simcuda/ptx_decoder.h"

namespace kiln::simcuda::ptx {

constexpr std::uint64_t kNaN32 = 0x7fffffffu, kNaN64 = 0x7fffffffffffffffull, kNaN16 = 0x7fff;

inline float f32(std::uint64_t v) { return std::bit_cast<float>(static_cast<std::uint32_t>(v)); }
inline double f64(std::uint64_t v) { return std::bit_cast<double>(v); }
inline std::uint64_t raw(float v) { return std::bit_cast<std::uint32_t>(v); }
inline std::uint64_t raw(double v) { return std::bit_cast<std::uint64_t>(v); }
// With NaNs made canonical.
inline std::uint64_t result(float v) { return v == v ? raw(v) : kNaN32; }
inline std::uint64_t result(double v) { return v == v ? raw(v) : kNaN64; }

inline std::uint64_t flush32(std::uint64_t v) { return (v & 0x7f800000u) == 0 ? v & 0x80000000u : v; }
// [0, 1]; NaN becomes +0.
inline float saturate(float v) { return v > 0.0f ? (v < 1.0f ? v : 1.0f) : 0.0f; }
inline double saturate(double v) { return v > 0.0 ? (v < 1.0 ? v : 1.0) : 0.0; }

// A binary format narrower than double. `finite` formats have no infinities (e4m3: the largest exponent holds numbers too).
struct Format {
  int exponent_bits, fraction_bits;
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
};
inline constexpr Format kF16{5, 10}, kBF16{8, 7}, kF32{8, 23}, kE5M2{5, 2}, kTF32{8, 10};

// Rounds the value of a double once. Overflow gives infinity or the largest finite number, by the rounding. NaN gives all ones.
std::uint64_t narrow(double v, Format format, Round round);
double widen(std::uint64_t v, Format format);
inline double from_f16(std::uint64_t v) { return widen(v, kF16); }
inline double from_bf16(std::uint64_t v) { return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(v << 16))); }

// x + y as a double whose last bit is set when it is not exact: rounding it again to a format of at most 51 bits gives the right result.
double add_to_odd(double x, double y);
// An integer as a double, to odd likewise.
double to_odd(std::int64_t v);
double to_odd(std::uint64_t v);

// E4M3 of the FP8 formats: no infinity, one NaN (0x7f). Saturates.
std::uint64_t narrow_e4m3(double v, bool relu);
double widen_e4m3(std::uint64_t v);

}  // namespace kiln::simcuda::ptx
