#include "kiln/ir/diagnostic.h"

namespace kiln::ir {

std::string to_string(const Diagnostics& diagnostics) {
  std::string text;
  for (const Diagnostic& d : diagnostics) {
    if (!text.empty()) text += '\n';
    if (!d.place.empty()) text += d.place + ": ";
    if (!d.kernel.empty()) text += "kernel '" + d.kernel + "': ";
    text += d.message;
  }
  return text;
}

}  // namespace kiln::ir
