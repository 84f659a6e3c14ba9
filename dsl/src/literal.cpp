// Host values as constants of the kernel: exact in the type they take, or refused with the line.
#include <bit>

#include "kiln/dsl/recorder.h"
#include "kiln/ir/decimal.h"
#include "kiln/ir/floats.h"

namespace kiln::dsl {
namespace {

[[noreturn]] void refuse(const std::string& value, ir::Type type, const char* why, const Where& where) {
  fail("the constant " + value + " " + why + " " + std::string(ir::name(type)), where);
}

std::uint64_t integer_in_float(ir::Type type, std::uint64_t magnitude, bool negative, const Where& where) {
  const auto text = [&] { return (negative ? "-" : "") + std::to_string(magnitude); };
  if (magnitude != 0 && static_cast<int>(std::bit_width(magnitude)) - std::countr_zero(magnitude) > ir::precision(type))
    refuse(text(), type, "is not exact in", where);
  const double value = static_cast<double>(magnitude);
  if (ir::overflows(type, value)) refuse(text(), type, "overflows", where);
  return ir::float_bits(type, negative ? -value : value);
}

}  // namespace

std::uint64_t unsigned_literal(ir::Type type, std::uint64_t value, const Where& where) {
  if (ir::is_real(type)) return integer_in_float(type, value, false, where);
  const unsigned width = ir::bit_width(type) - (ir::is_signed(type) ? 1 : 0);
  if (static_cast<unsigned>(std::bit_width(value)) > width) refuse(std::to_string(value), type, "does not fit", where);
  return value;
}

std::uint64_t signed_literal(ir::Type type, std::int64_t value, const Where& where) {
  if (value >= 0) return unsigned_literal(type, static_cast<std::uint64_t>(value), where);
  const std::uint64_t magnitude = 0 - static_cast<std::uint64_t>(value);
  if (ir::is_real(type)) return integer_in_float(type, magnitude, true, where);
  if (ir::is_unsigned(type) || static_cast<unsigned>(std::bit_width(magnitude - 1)) > ir::bit_width(type) - 1) {
    refuse(std::to_string(value), type, "does not fit", where);
  }
  return static_cast<std::uint64_t>(value) & ir::value_mask(type);
}

// A fraction rounds to the type's precision, as it does in C++; only what is beyond its range is refused.
std::uint64_t float_literal(ir::Type type, double value, const Where& where) {
  if (ir::overflows(type, value))
    refuse(ir::shortest_decimal(ir::Type::F64, std::bit_cast<std::uint64_t>(value)), type, "overflows", where);
  return ir::float_bits(type, value);
}

}  // namespace kiln::dsl
