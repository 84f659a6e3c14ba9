#include "kiln/ir/decimal.h"

#include <locale.h>
#include <stdlib.h>

#include <new>

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

}  // namespace kiln::ir
