// Grids that the device holds: three u32 that a launch reads when its turn comes.
#pragma once
#include <array>
#include <cstdint>

#include "kiln/ir/param_layout.h"
#include "kiln/runtime/client.h"
#include "src/failure/claims.h"

namespace kiln::rt {

inline constexpr std::uint64_t kGridBytes = 3 * sizeof(std::uint32_t);

// Kinds of a fault record that only the host writes, of a launch that did not run: an axis of its grid was 0, which is no fault; or was
// beyond what the launch can have: `dimension` and `index` say which and how much, `extent` the limit.
inline constexpr std::uint32_t kFaultEmptyGrid = 0x101, kFaultGridTooLarge = 0x102;

// What a launch reads of the buffer that holds its grid.
MemoryRange grid_range(const Binding& grid);

enum class GridState : std::uint8_t { Fits, Empty, TooLarge };
// TooLarge: `axis` is the first one that is. An axis of 0 makes it empty whatever the others are.
GridState judge_grid(const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& limit, std::uint32_t& axis);

// The error of a launch whose grid is too large.
Error grid_too_large(const std::string& kernel, const std::string& place, std::uint32_t axis, std::uint64_t blocks, std::uint64_t limit);

// Reads the grid of a launch whose turn has come. False: it does not run, and the record says why.
bool read_grid(const void* from, const std::array<std::uint32_t, 3>& limit, std::array<std::uint32_t, 3>& grid, ir::FaultRecord& record);

}  // namespace kiln::rt
