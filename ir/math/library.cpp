#include "math/library.h"

namespace kiln::ir::math {

bool has_expansion(Opcode, Type) { return false; }
ValueId expand(Builder&, Opcode, ValueId a, ValueId) { return a; }

}  // namespace kiln::ir::math
