// The structured body as a flat list of instructions, so that a warp can stop at a barrier and go on later.
#pragma once
#include <cstdint>
#include <vector>

#include "kiln/ir/kernel.h"

namespace kiln::interp {

struct Inst {
  enum class Kind : std::uint8_t {
    // Statements: skipped to `end` when no lane is active.
    Simple,
    If,
    Switch,
    While,
    For,
    // Marks: always executed.
    Else,
    EndIf,
    Case,
    EndSwitch,
    Yield,
    LoopBack,
    End
  } kind = Kind::Simple;
  ir::OpId op = ir::kNone;   // the operation; of marks: the one they belong to
  std::uint32_t target = 0;  // If: its Else; Else: its EndIf; Switch: its first Case; Case: the next Case or EndSwitch; While, For, Yield:
                             // its LoopBack; LoopBack: the first instruction of the loop
  std::uint32_t end = 0;     // statements: the mark behind the region they stand in
  std::uint32_t number = 0;  // Case: which
};

// Precondition: a verified kernel.
std::vector<Inst> flatten(const ir::Kernel& kernel);

}  // namespace kiln::interp
