#include "kiln/ir/decimal.h"

#include <fenv.h>
#include <locale.h>
#include <stdlib.h>

#include <bit>
#include <charconv>
#include <new>

#include "kiln/ir/floats.h"

namespace kiln::ir {
namespace {

// strtod itself takes the process's decimal separator: "1.5" is 1 where that is a comma.
locale_t c_locale() {
  static const locale_t locale = newlocale(LC_ALL_MASK, "C", nullptr);
  if (locale == nullptr) throw std::bad_alloc();
  return locale;
}

}  // namespace

float to_f32(const std::string& text) { return strtof_l(text.c_str(), nullptr, c_locale()); }
double to_f64(const std::string& text) { return strtod_l(text.c_str(), nullptr, c_locale()); }

// By way of the double next to the number, towards zero, whose last bit is set where it is not the number itself: so rounding that is
// rounding the number. strtod rounds in the direction that is set.
std::optional<std::uint16_t> to_narrow(Type type, const std::string& text) {
  const int before = fegetround();
  const auto read = [&](int direction) {
    fesetround(direction);
    return to_f64(text);
  };
  const double inner = read(FE_TOWARDZERO), low = read(FE_DOWNWARD), high = read(FE_UPWARD);
  fesetround(before);
  const auto bits = std::bit_cast<std::uint64_t>(inner);
  const auto odd = std::bit_cast<double>(low == high ? bits : bits | 1);
  if (!is_finite(odd) || overflows(type, odd)) return std::nullopt;
  return round_narrow(type, odd);
}

std::string shortest_decimal(Type type, std::uint64_t bits) {
  char buffer[64];
  const auto text = [&](std::to_chars_result r) { return std::string(buffer, r.ptr); };
  const double value = float_value(type, bits);
  if (type == Type::F32) return text(std::to_chars(buffer, buffer + sizeof buffer, static_cast<float>(value)));
  if (type == Type::F64 || value != value || value - value != 0) return text(std::to_chars(buffer, buffer + sizeof buffer, value));
  for (int digits = 1;; ++digits) {
    const std::string s = text(std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits));
    if (to_narrow(type, s) == static_cast<std::uint16_t>(bits) || digits == 9) return s;  // five tell all apart
  }
}

}  // namespace kiln::ir
