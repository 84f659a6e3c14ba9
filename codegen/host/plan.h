// How a kernel with barriers is cut: uniform control flow runs once for the block, what lies between barriers runs warp after warp.
#pragma once
#include <vector>

#include "host/shape.h"
#include "host/structure.h"
#include "kiln/ir/kernel.h"

namespace kiln::codegen::host {

// One step of a block-level region.
struct Step {
  enum class Kind : std::uint8_t {
    Segment,  // operations [begin, end) of the region, for each warp that has live lanes; the last may be a vote of the block
    Scalar,   // an operation that gives or takes one value for the whole block
    Control   // control flow of the whole block
  } kind;
  std::size_t begin = 0, end = 0;
  ir::OpId op = ir::kNone;
  std::uint32_t segment = 0;  // Segment: its number
};

struct Plan {
  Plan(const ir::Kernel& kernel, const Structure& structure, const Shapes& shapes);

  std::vector<std::vector<Step>> steps;  // per region; only block-level regions have some
  std::vector<char> block_value;  // per op: its result is one value for the block, computed outside of the warp loop (constants and queries
                                  // of the launch too)
  std::vector<char> block_slot;   // per slot: one value for the block
  std::vector<char> rematerialise;        // per op: cheap enough to compute again in every segment
  std::vector<char> saved;                // per op: used in a segment other than its own: lives in the block's context
  std::vector<char> captured;             // per op: steers the block, though warps compute it
  std::vector<char> saved_slot;           // per slot: lives in the block's context
  std::vector<char> saved_local;          // per mem: a Local memory that lives in the block's context
  std::vector<std::uint32_t> segment_of;  // per op; 0: not in a segment
  std::uint32_t segments = 0;
};

}  // namespace kiln::codegen::host
