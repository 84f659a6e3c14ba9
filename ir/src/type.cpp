#include "kiln/ir/type.h"

namespace kiln::ir {
namespace {
constexpr std::string_view kNames[kTypeCount] = {"void", "bool", "i8",  "u8",   "i16", "u16", "i32",  "u32",
                                                 "i64",  "u64",  "f16", "bf16", "f32", "f64", "e4m3", "e5m2"};
}

std::string_view name(Type t) { return kNames[static_cast<int>(t)]; }

std::optional<Type> parse_type(std::string_view text) {
  for (int i = 0; i < kTypeCount; ++i) {
    if (kNames[i] == text) return static_cast<Type>(i);
  }
  return std::nullopt;
}

}  // namespace kiln::ir
