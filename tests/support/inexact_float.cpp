#include "support/inexact_float.h"

#include <sstream>

namespace kiln::test {

std::optional<std::string> inexact_float(const std::string& ptx) {
  std::istringstream text(ptx);
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    ++number;
    // The instruction, behind its guard: "@%p1 add.rn.f32".
    std::istringstream words(line);
    std::string instruction;
    words >> instruction;
    if (instruction.starts_with('@')) words >> instruction;
    const auto has = [&](const char* part) { return (instruction + ".").find(std::string(".") + part + ".") != std::string::npos; };
    const std::string name = instruction.substr(0, instruction.find('.'));
    const bool of_floats = has("f16") || has("f16x2") || has("bf16") || has("bf16x2") || has("f32") || has("f32x2") || has("f64");
    const bool fusible = (name == "add" || name == "sub" || name == "mul") && of_floats;
    const auto wrong = [&](const char* why) { return "PTX line " + std::to_string(number) + ": " + instruction + ": " + why; };
    if (fusible && !has("rn") && !has("rz") && !has("rm") && !has("rp")) return wrong("a float operation without .rn: ptxas may fuse it");
    if (has("approx")) return wrong("an approximation, whose bits no other device has");
    if (has("ftz")) return wrong("subnormals are flushed");
  }
  return std::nullopt;
}

}  // namespace kiln::test
