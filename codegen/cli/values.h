// Typed values between text and bit patterns (the low bits, see ir::value_mask).
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "command.h"
#include "kiln/ir/type.h"

namespace kiln::cli {

// "2.5", "-7", "0x1f", "true", "nan", "-inf". Integers are exact and in range, floats are rounded once. Throws std::invalid_argument with a
// sentence.
std::uint64_t parse_value(ir::Type type, std::string_view text);
// The number `n` in that type (integers wrap, floats round).
std::uint64_t value_of_index(ir::Type type, std::uint64_t n);

// A number, true or false; "nan", "inf" and "-inf" as strings. The shortest text that reads back to the same bits.
Json value_json(ir::Type type, std::uint64_t bits);
std::string value_text(ir::Type type, std::uint64_t bits);  // what parse_value reads as these bits; of NaN, as one
std::string value_hex(ir::Type type, std::uint64_t bits);   // "0x3f800000", all digits of the type

std::uint64_t load_bits(ir::Type type, const void* from);  // one element in memory
void store_bits(ir::Type type, void* to, std::uint64_t bits);

}  // namespace kiln::cli
