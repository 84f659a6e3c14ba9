// Numbers in text, decimal or 0x, as C rounds them, whatever locale the process is in.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "kiln/ir/type.h"

namespace kiln::ir {

// `text` is a whole number literal of C. Beyond the type's range it gives infinity, below it the nearest subnormal or zero.
float to_f32(const std::string& text);
double to_f64(const std::string& text);
// The bits of an f16, bf16, e4m3 or e5m2, rounded once too; nothing beyond the type's range.
std::optional<std::uint16_t> to_narrow(Type type, const std::string& text);

// The shortest decimal that is read as this value of a float type; "inf", "-inf", "nan", "-nan".
std::string shortest_decimal(Type type, std::uint64_t bits);

}  // namespace kiln::ir
