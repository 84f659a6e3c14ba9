#include "simcuda/ptx_values.h"

namespace kiln::simcuda::ptx {

std::uint64_t narrow(double v, Format f, Round round) {
  const std::uint64_t in = raw(v);
  const bool negative = (in >> 63) != 0;
  const std::uint64_t sign = static_cast<std::uint64_t>(negative) << (f.exponent_bits + f.fraction_bits);
  const std::uint64_t infinity = ((std::uint64_t{1} << f.exponent_bits) - 1) << f.fraction_bits;
  const int exponent = static_cast<int>(in >> 52 & 0x7ff);
  std::uint64_t fraction = in & ((std::uint64_t{1} << 52) - 1);
  if (exponent == 0x7ff) {
    if (fraction != 0) return infinity | ((std::uint64_t{1} << f.fraction_bits) - 1);
    return sign | infinity;
  }
  if (exponent == 0 && fraction == 0) return sign;
  // value = significand * 2^(scale), significand below 2^53.
  const std::uint64_t significand = exponent == 0 ? fraction : fraction | std::uint64_t{1} << 52;
  const int scale = (exponent == 0 ? 1 : exponent) - 1023 - 52;
  // The exponent of the last place of the result: that of a number of full precision, but no smaller than of a subnormal.
  int top = 52;
  while (top > 0 && (significand >> top) == 0) --top;
  int last = scale + top - f.fraction_bits;
  const int smallest = 1 - f.bias() - f.fraction_bits;
  if (last < smallest) last = smallest;
  const int shift = last - scale;
  std::uint64_t kept = 0, rest = 0, half = 0;
  if (shift <= 0) {
    kept = significand << -shift;
  } else if (shift >= 64) {
    rest = 1;
    half = 2;
  } else {
    kept = significand >> shift;
    rest = significand & ((std::uint64_t{1} << shift) - 1);
    half = std::uint64_t{1} << (shift - 1);
  }
  bool up = false;
  switch (round) {
    case Round::Down: up = negative && rest != 0; break;
    case Round::Up: up = !negative && rest != 0; break;
    case Round::Zero: break;
    case Round::Away: up = rest >= half && rest != 0; break;
    default: up = rest > half || (rest == half && rest != 0 && (kept & 1) != 0);
  }
  kept += up ? 1 : 0;
  if (kept == 0) return sign;
  // kept * 2^last as bits: the carry out of the fraction goes into the exponent by itself.
  const std::uint64_t biased = kept >> f.fraction_bits != 0 ? static_cast<std::uint64_t>(last + f.fraction_bits + f.bias()) : 0;
  std::uint64_t out = biased == 0 ? kept : ((biased - 1) << f.fraction_bits) + kept;
  if (out >= infinity) {
    const bool to_infinity = round == Round::Nearest || round == Round::Away || round == Round::None || (round == Round::Up && !negative) ||
                             (round == Round::Down && negative);
    out = to_infinity ? infinity : infinity - 1;
  }
  return sign | out;
}

double widen(std::uint64_t v, Format f) {
  const int exponent = static_cast<int>(v >> f.fraction_bits & ((1u << f.exponent_bits) - 1));
  const std::uint64_t fraction = v & ((std::uint64_t{1} << f.fraction_bits) - 1);
  const bool negative = (v >> (f.exponent_bits + f.fraction_bits) & 1) != 0;
  double r = 0;
  if (exponent == (1 << f.exponent_bits) - 1) {
    r = fraction != 0 ? std::nan("") : HUGE_VAL;
  } else if (exponent == 0) {
    r = std::ldexp(static_cast<double>(fraction), 1 - f.bias() - f.fraction_bits);
  } else {
    r = f64(static_cast<std::uint64_t>(exponent - f.bias() + 1023) << 52 | fraction << (52 - f.fraction_bits));
  }
  return negative ? -r : r;
}

double add_to_odd(double x, double y) {
  const double s = x + y;
  if (!std::isfinite(s)) return s;
  const double t = s - x, error = (x - (s - t)) + (y - t);
  if (error == 0 || (raw(s) & 1) != 0) return s;
  const bool larger = (error > 0) == (s > 0);
  return f64(larger ? raw(s) + 1 : raw(s) - 1);
}

double to_odd(std::uint64_t v) {
  if (v < std::uint64_t{1} << 53) return static_cast<double>(v);
  const std::uint64_t low = v & 0x7ff;
  return static_cast<double>((v & ~std::uint64_t{0x7ff}) | (low != 0 ? std::uint64_t{0x800} : 0));
}

double to_odd(std::int64_t v) {
  return v < 0 ? -to_odd(std::uint64_t{0} - static_cast<std::uint64_t>(v)) : to_odd(static_cast<std::uint64_t>(v));
}

std::uint64_t narrow_e4m3(double v, bool relu) {
  if (v != v) return 0x7f;
  if (relu && !(v > 0)) return 0;
  // The same as a format with five exponent bits' worth of range: round by hand on the e4m3 grid, then clamp to 448.
  const std::uint64_t sign = std::signbit(v) ? 0x80 : 0;
  const double a = std::fabs(v);
  if (a >= 464) return sign | 0x7e;  // past half a step over 448: everything saturates
  int exponent = a == 0 ? -6 : std::max(std::ilogb(a), -6);
  double steps = std::nearbyint(std::ldexp(a, 3 - exponent));
  if (steps >= 16) {
    steps = 8;
    ++exponent;
  }
  const auto n = static_cast<std::uint64_t>(steps);
  const std::uint64_t out = n < 8 ? n : (static_cast<std::uint64_t>(exponent + 7) << 3) + (n - 8);
  return sign | (out > 0x7e ? 0x7e : out);
}

double widen_e4m3(std::uint64_t v) {
  const std::uint64_t e = v >> 3 & 15, f = v & 7;
  double r = e == 15 && f == 7 ? std::nan("")
             : e == 0          ? std::ldexp(static_cast<double>(f), -9)
                               : std::ldexp(static_cast<double>(8 + f), static_cast<int>(e) - 10);
  return (v & 0x80) != 0 ? -r : r;
}

}  // namespace kiln::simcuda::ptx
