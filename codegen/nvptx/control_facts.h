// What the lowering must know about control flow before it emits it: where warp operations need the mask of active lanes, and where
// lanes may go missing on the way. Computed once a kernel; plain data.
#pragma once
#include <vector>

#include "kiln/ir/analysis.h"

namespace kiln::codegen::nvptx {

struct ControlFacts {
  ir::Uniformity uniformity;
  // Per region, operations of nested regions included.
  std::vector<bool> needs_lanes;       // holds a warp operation, or a block_uniform, which elects a lane
  std::vector<bool> returns_some;      // holds a Return that the threads of a warp may not take together
  std::vector<bool> leaves;            // holds a Break or Continue of the loop around the region (not of loops inside it)
  std::vector<std::size_t> last_need;  // position + 1 of the region's last operation that needs lanes; 0: none
  // Per operation: a loop with warp operations, of which a Break or Continue may be taken by some lanes of a warp only.
  std::vector<bool> loop_splits;

  bool varies(ir::ValueId v) const { return uniformity.value[v] == ir::Level::Thread; }  // among the active lanes of a warp
  bool op_needs_lanes(const ir::Kernel& k, ir::OpId id) const;
  bool any(const std::vector<bool>& fact, const ir::Op& op) const;  // of one of the operation's regions
};

ControlFacts analyze_control(const ir::Kernel& kernel);

}  // namespace kiln::codegen::nvptx
