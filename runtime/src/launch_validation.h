// The checks of a launch that need no compiled program. Pure functions: facts, arguments and limits in, the first violated rule out.
#pragma once
#include <cstddef>
#include <optional>
#include <span>
#include <string>

#include "kiln/runtime/client.h"
#include "src/launch_facts.h"

namespace kiln::rt {

// Number, kind, type and rank of the arguments, and that a buffer's extents fit its bytes. Rules: ArgumentCount, ArgumentKind,
// ArgumentType, ArgumentRank, ArgumentExtents, ArgumentAlignment. O(arguments).
std::optional<Error> validate_arguments(const LaunchFacts& facts, std::span<const LaunchArg> args);

// Grid, block, cluster and shared memory against the kernel and the device, in the order of the table of launch validation; a grid axis of
// 0 is fine. Rules: DimensionProductOverflow, ZeroDimension, CoordinateRangeExceedsU32, BlockShapeMismatch, BlockThreadsExceedContract,
// ClusterDoesNotDivideGrid; and, as TooManyResources (another program or device may do): DeviceDimensionExceeded,
// DeviceThreadsPerBlockExceeded, SharedMemoryTotalOverflow, DeviceSharedMemoryExceeded, ClusterLaunchUnsupported.
// `server`: whose device that is, for the texts; null: they have the name among the properties.
std::optional<Error> validate_config(const LaunchFacts& facts, const LaunchConfig& config, const DeviceProperties& device,
                                     const Server* server = nullptr);

// Extents that the kernel reads as 32 bit. Rules: ExtentExceedsU32, SizeExceedsU32.
std::optional<Error> validate_extents(const LaunchFacts& facts, std::span<const LaunchArg> args);

// An Out or InOut whose bytes (from the first to the last it can reach) overlap those of another argument, unless declared in_place. Rule:
// AliasingArguments.
std::optional<Error> validate_aliasing(const LaunchFacts& facts, std::span<const LaunchArg> args);

// "argument 2 ('y')": how errors name one. Counts from 1, as those of the compiler do.
std::string argument(const LaunchFacts& facts, std::size_t i);

// The bytes of its allocation that a buffer argument can reach. Empty when it has no elements.
ByteRange byte_hull(const LaunchArg& arg, const ParamFacts& param);
// Product of the extents; none when it does not fit 64 bits.
std::optional<std::uint64_t> element_count(const LaunchArg& arg, unsigned rank);

}  // namespace kiln::rt
