#include "src/launch_validation.h"

#include <array>
#include <string>

#include "src/make_error.h"
#include "src/server.h"
#include "src/strided.h"

namespace kiln::rt {
namespace {

constexpr std::array<char, 3> kAxis = {'x', 'y', 'z'};
constexpr std::uint64_t kU32Range = std::uint64_t{1} << 32;

std::string text(const Dim3& d) { return "(" + std::to_string(d.x) + ", " + std::to_string(d.y) + ", " + std::to_string(d.z) + ")"; }
std::string text(const std::array<std::uint32_t, 3>& d) { return text(Dim3(d[0], d[1], d[2])); }

struct Violation {
  const LaunchFacts& facts;
  ErrorCode code = ErrorCode::Validation;

  Error operator()(const char* rule, std::string message, std::optional<std::uint64_t> requested = {},
                   std::optional<std::uint64_t> limit = {}, Error::Numbers numbers = Error::Numbers::Beyond) const {
    return make_error(code, rule, std::move(message),
                      {.kernel = facts.kernel, .place = facts.place, .requested = requested, .limit = limit, .numbers = numbers});
  }
};

bool multiply(std::uint64_t a, std::uint64_t b, std::uint64_t& out) { return !__builtin_mul_overflow(a, b, &out); }
bool product(const Dim3& d, std::uint64_t& out) { return multiply(std::uint64_t{d.x} * d.y, d.z, out); }

std::string kind(bool is_buffer, ir::Type type, unsigned rank) {
  return is_buffer ? "a buffer of " + std::string(ir::name(type)) + " of rank " + std::to_string(rank)
                   : "a scalar " + std::string(ir::name(type));
}

// One past the last element that a strided view reaches, relative to its first; false on overflow. No extent is 0.
bool strided_span(const LaunchArg& arg, unsigned rank, std::uint64_t& elements) {
  elements = 1;
  for (unsigned d = 0; d < rank; ++d) {
    std::uint64_t reach = 0;
    if (!multiply(arg.extents[d] - 1, arg.strides[d], reach) || __builtin_add_overflow(elements, reach, &elements)) return false;
  }
  return true;
}

// Whether two elements of a strided view may lie on one another.
bool names_twice(const LaunchArg& arg, unsigned rank) {
  StridedBinding view;
  view.rank = static_cast<std::uint8_t>(rank);
  view.extents = arg.extents;
  view.strides = arg.strides;
  return may_overlap(view);
}

}  // namespace

std::string argument(const LaunchFacts& facts, std::size_t i) {
  return "argument " + std::to_string(i + 1) + " ('" + facts.params[i].name + "')";
}

std::optional<std::uint64_t> element_count(const LaunchArg& arg, unsigned rank) {
  if (rank == 1) return arg.extents[0];
  std::uint64_t n = 1;
  bool zero = false, fits = true;
  for (unsigned d = 0; d < rank; ++d) {
    zero = zero || arg.extents[d] == 0;
    fits = fits && multiply(n, arg.extents[d], n);
  }
  if (zero) return 0;
  return fits ? std::optional(n) : std::nullopt;
}

ByteRange byte_hull(const LaunchArg& arg, const ParamFacts& param) {
  const std::optional<std::uint64_t> n = element_count(arg, param.rank);
  if (n == 0 || arg.binding.memory == nullptr) return {};
  std::uint64_t elements = n.value_or(0), bytes = 0, end = 0;
  // Extents beyond all numbers: then all that was given.
  if (!n || (param.strided && !strided_span(arg, param.rank, elements)) || !multiply(elements, ir::byte_size(param.type), bytes) ||
      __builtin_add_overflow(arg.binding.range.begin, bytes, &end))
    return arg.binding.range;
  return {arg.binding.range.begin, end};
}

std::optional<Error> validate_arguments(const LaunchFacts& facts, std::span<const LaunchArg> args) {
  const Violation violation{facts};
  if (args.size() != facts.params.size()) {
    return violation("ArgumentCount",
                     "the kernel takes " + std::to_string(facts.params.size()) + (facts.params.size() == 1 ? " argument" : " arguments") +
                         " and was given " + std::to_string(args.size()),
                     args.size(), facts.params.size(), Error::Numbers::NotEqual);
  }
  for (std::size_t i = 0; i < args.size(); ++i) {
    const ParamFacts& param = facts.params[i];
    const LaunchArg& arg = args[i];
    const auto wrong = [&](const char* rule) {
      return violation(rule, argument(facts, i) + " must be " + kind(param.is_buffer, param.type, param.rank) + ", and it is " +
                                 kind(arg.is_buffer, arg.type, arg.rank));
    };
    if (arg.is_buffer != param.is_buffer) return wrong("ArgumentKind");
    if (arg.type != param.type) return wrong("ArgumentType");
    if (!param.is_buffer) continue;
    if (arg.rank != param.rank) return wrong("ArgumentRank");
    const std::uint64_t size = ir::byte_size(param.type),
                        room = arg.binding.range.empty() ? 0 : arg.binding.range.end - arg.binding.range.begin;
    const std::optional<std::uint64_t> n = element_count(arg, param.rank);
    std::uint64_t elements = n.value_or(0), bytes = 0;
    bool fits = n.has_value();
    if (fits && elements != 0 && param.strided) fits = strided_span(arg, param.rank, elements);
    fits = fits && multiply(elements, size, bytes) && bytes <= room && (bytes == 0 || arg.binding.memory != nullptr);
    if (!fits) {
      return violation("ArgumentExtents", argument(facts, i) + " has extents that reach beyond its " + std::to_string(room) + " bytes",
                       n.has_value() ? std::optional(bytes) : std::nullopt, room);
    }
    if (bytes != 0 && param.strided && param.access != ir::Access::In && names_twice(arg, param.rank)) {
      std::string strides;
      for (unsigned d = 0; d < param.rank; ++d) strides += (d == 0 ? "" : ", ") + std::to_string(arg.strides[d]);
      return Violation{facts, ErrorCode::UnsupportedStrides}("OverlappingStrides",
                                                             argument(facts, i) + " names an element more than once (strides " + strides +
                                                                 "), and the kernel writes it; only an In may be seen so");
    }
    if (bytes != 0 && arg.binding.range.begin % size != 0) {
      return violation("ArgumentAlignment", argument(facts, i) + " starts at byte " + std::to_string(arg.binding.range.begin) +
                                                " of its memory, which is no multiple of the " + std::to_string(size) +
                                                " bytes of its elements");
    }
  }
  return std::nullopt;
}

std::optional<Error> validate_config(const LaunchFacts& facts, const LaunchConfig& config, const DeviceProperties& device,
                                     const Server* server) {
  const auto label = [&] { return server != nullptr ? server->label() : device.name; };
  const Violation violation{facts}, refusal{facts, ErrorCode::TooManyResources};
  const bool empty_grid = config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0;
  std::uint64_t blocks = 0, threads = 0;
  if (!empty_grid && !product(config.grid, blocks)) {
    return violation("DimensionProductOverflow", "the grid " + text(config.grid) + " has more blocks than 64 bits can count");
  }
  const auto zero = [](const Dim3& d) {
    for (int a = 0; a < 3; ++a)
      if (d[a] == 0) return a;
    return -1;
  };
  if (const int axis = zero(config.block); axis >= 0) {
    return violation("ZeroDimension",
                     std::string("the block has no threads: its ") + kAxis[static_cast<unsigned>(axis)] + " is 0 in " + text(config.block));
  }
  if (!product(config.block, threads)) {
    return violation("DimensionProductOverflow", "the block " + text(config.block) + " has more threads than 64 bits can count");
  }
  for (int a = 0; a < 3; ++a) {
    const std::uint64_t positions = std::uint64_t{config.grid[a]} * config.block[a];
    if (facts.global_id32[static_cast<unsigned>(a)] && positions > kU32Range) {
      return violation("CoordinateRangeExceedsU32",
                       std::string("the kernel counts positions of axis ") + kAxis[static_cast<unsigned>(a)] +
                           " in 32 bits (global_id), and a grid of " + std::to_string(config.grid[a]) + " blocks of " +
                           std::to_string(config.block[a]) + " threads has " + std::to_string(positions) +
                           "; use global_id64 or fewer blocks",
                       positions, kU32Range);
    }
  }
  const std::array<std::uint32_t, 3> block{config.block.x, config.block.y, config.block.z};
  if (facts.block_size[0] != 0 && facts.block_size != block) {
    // A row of threads has one number.
    const bool rows = facts.block_size[1] == 1 && facts.block_size[2] == 1 && block[1] == 1 && block[2] == 1;
    const std::string declared = text(facts.block_size);
    std::optional<std::uint64_t> given, expected;
    if (rows) given = block[0], expected = facts.block_size[0];
    return violation("BlockShapeMismatch",
                     "the kernel declares blocks of " + declared + " threads and was launched with " + text(config.block) +
                         (rows ? "; use automatic(n), or a block of " : "; use a block of ") + declared,
                     given, expected, Error::Numbers::NotEqual);
  }
  if (facts.max_threads != 0 && threads > facts.max_threads) {
    return violation("BlockThreadsExceedContract",
                     "the kernel declares at most " + std::to_string(facts.max_threads) + " threads a block, and " + text(config.block) +
                         " has " + std::to_string(threads),
                     threads, facts.max_threads);
  }
  if (const int axis = zero(config.cluster); axis >= 0) {
    return violation("ZeroDimension", std::string("the cluster has no blocks: its ") + kAxis[static_cast<unsigned>(axis)] + " is 0 in " +
                                          text(config.cluster));
  }
  for (int a = 0; a < 3; ++a) {
    if (config.grid[a] % config.cluster[a] != 0) {
      return violation("ClusterDoesNotDivideGrid",
                       std::string("the grid has ") + std::to_string(config.grid[a]) + " blocks along " + kAxis[static_cast<unsigned>(a)] +
                           ", which clusters of " + std::to_string(config.cluster[a]) + " do not divide",
                       config.grid[a], config.cluster[a], Error::Numbers::AsTold);
    }
  }
  const auto beyond = [&](const char* what, const Dim3& d, const Dim3& max) -> std::optional<Error> {
    for (int a = 0; a < 3; ++a) {
      if (d[a] <= max[a]) continue;
      return refusal("DeviceDimensionExceeded",
                     std::string("the ") + what + "'s " + kAxis[static_cast<unsigned>(a)] + " is " + std::to_string(d[a]) + ", and " +
                         label() + " takes at most " + std::to_string(max[a]),
                     d[a], max[a]);
    }
    return std::nullopt;
  };
  if (auto error = beyond("grid", config.grid, device.max_grid)) return error;
  if (auto error = beyond("block", config.block, device.max_block)) return error;
  if (threads > device.max_threads_per_block) {
    return refusal("DeviceThreadsPerBlockExceeded",
                   "the block " + text(config.block) + " has " + std::to_string(threads) + " threads, and " + label() + " takes at most " +
                       std::to_string(device.max_threads_per_block),
                   threads, device.max_threads_per_block);
  }
  const std::uint64_t total = (facts.static_shared + 15) / 16 * 16 + config.shared_bytes;
  const auto sum = [&] {
    return std::to_string(facts.static_shared) + " bytes of static and " + std::to_string(config.shared_bytes) +
           " of dynamic shared memory";
  };
  if (total > 0xffffffffu) return refusal("SharedMemoryTotalOverflow", sum() + " are more than 32 bits can count", total, 0xffffffffu);
  if (facts.static_shared > device.max_static_shared) {
    return refusal("DeviceSharedMemoryExceeded",
                   "the kernel declares " + std::to_string(facts.static_shared) +
                       " bytes of static shared memory (Shared), and a block of " + label() + " has at most " +
                       std::to_string(device.max_static_shared) + "; use dynamic shared memory (DynamicShared), of which it has up to " +
                       std::to_string(device.max_dynamic_shared),
                   facts.static_shared, device.max_static_shared);
  }
  if (total > device.max_dynamic_shared) {
    return refusal(
        "DeviceSharedMemoryExceeded",
        sum() + " are more than the " + std::to_string(device.max_dynamic_shared) + " a block of " + label() + " has; use less of it",
        total, device.max_dynamic_shared);
  }
  if (config.cluster != Dim3(1, 1, 1) && !device.clusters) {
    return refusal("ClusterLaunchUnsupported",
                   "clusters of " + text(config.cluster) + " blocks were asked for, and " + label() + " has none");
  }
  return std::nullopt;
}

std::optional<Error> validate_extents(const LaunchFacts& facts, std::span<const LaunchArg> args) {
  const Violation violation{facts};
  for (std::size_t i = 0; i < facts.params.size(); ++i) {
    const ParamFacts& param = facts.params[i];
    if (!param.is_buffer) continue;
    for (unsigned d = 0; d < param.rank; ++d) {
      if (!param.extent32[d] || args[i].extents[d] < kU32Range) continue;
      return violation("ExtentExceedsU32",
                       argument(facts, i) + " has extent " + std::to_string(args[i].extents[d]) + " in dimension " + std::to_string(d) +
                           ", and the kernel reads it as 32 bit; use extent64",
                       args[i].extents[d], kU32Range - 1);
    }
    if (param.size32 && element_count(args[i], param.rank).value_or(kU32Range) >= kU32Range) {
      return violation("SizeExceedsU32",
                       argument(facts, i) + " has " + std::to_string(element_count(args[i], param.rank).value_or(kU32Range)) +
                           " elements, and the kernel reads their number as 32 bit; use size64",
                       element_count(args[i], param.rank), kU32Range - 1);
    }
  }
  return std::nullopt;
}

std::optional<Error> validate_aliasing(const LaunchFacts& facts, std::span<const LaunchArg> args) {
  const auto in_place = [&](std::size_t a, std::size_t b) {
    for (const auto& [x, y] : facts.in_place)
      if ((x == a && y == b) || (x == b && y == a)) return true;
    return false;
  };
  const auto written = [&](std::size_t i) { return facts.params[i].access != ir::Access::In; };
  for (std::size_t a = 0; a < args.size(); ++a) {
    if (!facts.params[a].is_buffer || args[a].binding.memory == nullptr) continue;
    const ByteRange x = byte_hull(args[a], facts.params[a]);
    for (std::size_t b = a + 1; b < args.size(); ++b) {
      if (!facts.params[b].is_buffer || args[b].binding.memory != args[a].binding.memory || (!written(a) && !written(b))) continue;
      const ByteRange y = byte_hull(args[b], facts.params[b]);
      if (x.empty() || y.empty() || x.end <= y.begin || y.end <= x.begin) continue;
      const bool declared = in_place(a, b);
      if (declared && x == y) continue;
      // Elements of one that are other elements of the other: whose value a thread reads would be a matter of luck.
      if (declared)
        return Violation{facts}("AliasingArguments", argument(facts, a) + " and " + argument(facts, b) +
                                                         " may be the same memory (in_place), and they are shifted: bytes " +
                                                         std::to_string(x.begin) + " to " + std::to_string(x.end) + " and " +
                                                         std::to_string(y.begin) + " to " + std::to_string(y.end) +
                                                         "; give them the same view or separate buffers");
      return Violation{facts}("AliasingArguments", argument(facts, a) + " and " + argument(facts, b) + " share memory (bytes " +
                                                       std::to_string(x.begin) + " to " + std::to_string(x.end) + " and " +
                                                       std::to_string(y.begin) + " to " + std::to_string(y.end) + "), and '" +
                                                       facts.params[written(a) ? a : b].name +
                                                       "' is written; give them separate buffers, or declare in_place in the kernel");
    }
  }
  return std::nullopt;
}

}  // namespace kiln::rt
