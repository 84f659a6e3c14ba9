// Numbers in text, decimal or 0x, as C rounds them, whatever locale the process is in.
#pragma once
#include <string>

namespace kiln::ir {

// `text` is a whole number literal of C. Beyond the type's range it gives infinity, below it the nearest subnormal or zero.
float to_f32(const std::string& text);
double to_f64(const std::string& text);

}  // namespace kiln::ir
