// CPU devices whose code does not know the block that it is launched with.
#pragma once
#include "kiln/runtime/client.h"

namespace kiln::test {

enum class LaunchBlocks : std::uint8_t {
  Rows,  // code for a row of threads where the block is one, else for any shape
  Any,   // code for any shape
};
// One client for each form, which lives as long as the process. Kernels that declare their block have code for that. One code of a kernel
// serves all shapes.
const Client& client_of(LaunchBlocks form);
// How often its code generator was at work.
int compilations(LaunchBlocks form);

}  // namespace kiln::test
