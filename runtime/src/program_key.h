// What identifies a compiled program, and the one serialiser of it, shared by the programs in memory and by what is stored.
#pragma once
#include <string>

#include "kiln/runtime/compiler.h"

namespace kiln::rt {

struct ProgramKey {
  std::string kernel_text;  // canonical text of the prepared kernel, locations included
  CompileOptions options;
};

// Equal bytes if and only if the code generator of this build makes equal bytes for both: the key holds the build id, the LLVM version, the
// kernel's text and every option. O(size of the text).
std::string serialise(const ProgramKey& key);

}  // namespace kiln::rt
