// What the IR says when something is wrong: sentences with a place. Also the exception that carries them.
#pragma once
#include <stdexcept>
#include <string>
#include <vector>

namespace kiln::ir {

struct Diagnostic {
  std::string kernel;   // may be empty (text that does not parse)
  std::string place;    // "saxpy.cpp:12" or "line 3, column 7" of a .kir; may be empty
  std::string message;  // one sentence: what is wrong, what was expected
};
using Diagnostics = std::vector<Diagnostic>;

// "place: kernel 'k': message", one per line.
std::string to_string(const Diagnostics& diagnostics);

// Thrown by the functions of kiln::ir that say so. what() is to_string(diagnostics()).
class IrError : public std::runtime_error {
 public:
  explicit IrError(Diagnostics diagnostics) : std::runtime_error(to_string(diagnostics)), diagnostics_(std::move(diagnostics)) {}
  const Diagnostics& diagnostics() const { return diagnostics_; }

 private:
  Diagnostics diagnostics_;
};

}  // namespace kiln::ir
