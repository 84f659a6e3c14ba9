#include "values.h"

#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>

#include "kiln/ir/decimal.h"
#include "kiln/ir/floats.h"

namespace kiln::cli {
namespace {

[[noreturn]] void refuse(ir::Type type, std::string_view text, const char* why) {
  throw std::invalid_argument("'" + std::string(text) + "' is no value of type " + std::string(name(type)) + why);
}

std::uint64_t parse_integer(ir::Type type, std::string_view text) {
  std::string_view digits = text;
  const bool negative = digits.starts_with('-');
  if (negative) digits.remove_prefix(1);
  int base = 10;
  if (digits.starts_with("0x") || digits.starts_with("0X")) base = 16, digits.remove_prefix(2);
  std::uint64_t magnitude = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), magnitude, base);
  if (error == std::errc::result_out_of_range) refuse(type, text, ": out of its range");
  if (error != std::errc{} || end != digits.data() + digits.size()) refuse(type, text, "");
  // The largest magnitude of that sign.
  const std::uint64_t top = is_signed(type) ? (std::uint64_t{1} << (bit_width(type) - 1)) - (negative ? 0 : 1)
                            : negative      ? 0
                                            : value_mask(type);
  if (magnitude > top) refuse(type, text, ": out of its range");
  return (negative ? ~magnitude + 1 : magnitude) & value_mask(type);
}

template <class F>
F c_value(const std::string& text) {
  if constexpr (std::is_same_v<F, float>) return ir::to_f32(text);
  else return ir::to_f64(text);
}

template <class F, class Bits>
std::uint64_t parse_float(ir::Type type, std::string_view text) {
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative) rest.remove_prefix(1);
  F value{};
  if (rest == "nan") {
    value = std::numeric_limits<F>::quiet_NaN();
  } else if (rest == "inf") {
    value = std::numeric_limits<F>::infinity();
  } else {
    const std::string magnitude(rest);
    const bool hex = rest.starts_with("0x") || rest.starts_with("0X");
    if (hex) rest.remove_prefix(2);
    // from_chars itself takes another sign, and "inf" and "nan" of any base.
    const auto first = static_cast<unsigned char>(rest.empty() ? 0 : rest.front());
    if (first != '.' && (hex ? std::isxdigit(first) : std::isdigit(first)) == 0) refuse(type, text, "");
    const auto [end, error] =
        std::from_chars(rest.data(), rest.data() + rest.size(), value, hex ? std::chars_format::hex : std::chars_format::general);
    const bool out_of_range = error == std::errc::result_out_of_range;
    if ((error != std::errc{} && !out_of_range) || end != rest.data() + rest.size()) refuse(type, text, "");
    if (out_of_range) value = c_value<F>(magnitude);  // too small: rounded, as C does
    if (std::isinf(value)) refuse(type, text, ": out of its range");
  }
  return std::bit_cast<Bits>(negative ? -value : value);
}

std::uint64_t parse_narrow(ir::Type type, std::string_view text) {
  const double wide = std::bit_cast<double>(parse_float<double, std::uint64_t>(type, text));  // also refuses what is no number
  if (!std::isfinite(wide)) {
    const ir::NarrowFormat f = ir::narrow_format(type);
    if (std::isinf(wide) && f.infinity == 0) refuse(type, text, ": it has no infinity");
    return (std::isinf(wide) ? f.infinity : f.nan) | (text.starts_with('-') ? f.sign() : 0u);
  }
  const std::optional<std::uint16_t> bits = ir::to_narrow(type, std::string(text));
  if (!bits) refuse(type, text, ": out of its range");
  return *bits;
}

Json float_json(ir::Type type, std::uint64_t bits) {
  const double value = ir::float_value(type, bits);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return ir::to_f64(ir::shortest_decimal(type, bits));  // the double nearest to the shortest text, so that JSON shows that text
}

}  // namespace

std::uint64_t parse_value(ir::Type type, std::string_view text) {
  if (type == ir::Type::F32) return parse_float<float, std::uint32_t>(type, text);
  if (type == ir::Type::F64) return parse_float<double, std::uint64_t>(type, text);
  if (ir::is_narrow(type)) return parse_narrow(type, text);
  if (ir::is_bool(type)) {
    if (text == "true" || text == "1") return 1;
    if (text == "false" || text == "0") return 0;
    refuse(type, text, ": true or false");
  }
  return parse_integer(type, text);
}

std::uint64_t value_of_index(ir::Type type, std::uint64_t n) {
  if (ir::is_real(type)) return ir::float_bits(type, static_cast<double>(n));
  return n & value_mask(type);
}

Json value_json(ir::Type type, std::uint64_t bits) {
  if (ir::is_real(type)) return float_json(type, bits);
  if (ir::is_bool(type)) return bits != 0;
  if (ir::is_signed(type)) return ir::sign_extend(type, bits);
  if (ir::is_integer(type)) return bits;
  return value_hex(type, bits);
}

std::string value_text(ir::Type type, std::uint64_t bits) {
  if (ir::is_bool(type)) return bits != 0 ? "true" : "false";
  if (ir::is_signed(type)) return std::to_string(ir::sign_extend(type, bits));
  if (!ir::is_real(type)) return std::to_string(bits);
  const double value = ir::float_value(type, bits);
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  return ir::shortest_decimal(type, bits);
}

std::string value_hex(ir::Type type, std::uint64_t bits) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text = "0x";
  for (int shift = static_cast<int>(byte_size(type)) * 8 - 4; shift >= 0; shift -= 4) text += digits[bits >> shift & 15];
  return text;
}

// Little-endian, as every host of ours is.
static_assert(std::endian::native == std::endian::little);
std::uint64_t load_bits(ir::Type type, const void* from) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, byte_size(type));
  return bits;
}
void store_bits(ir::Type type, void* to, std::uint64_t bits) { std::memcpy(to, &bits, byte_size(type)); }

}  // namespace kiln::cli
