#include "src/dynamic_grid.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "src/launch_validation.h"
#include "src/local_server.h"
#include "src/make_error.h"
#include "src/memory_order.h"

namespace kiln::rt {
namespace {

constexpr int kTries = 4;

const std::string& grid_name() {
  static const std::string& name = *new std::string("the grid");
  return name;
}

}  // namespace

MemoryRange grid_range(const Binding& grid) {
  MemoryRange range{grid.memory->id, {grid.range.begin, grid.range.begin + kGridBytes}};
  range.parameter = &grid_name();
  return range;
}

GridState judge_grid(const std::array<std::uint32_t, 3>& grid, const std::array<std::uint32_t, 3>& limit, std::uint32_t& axis) {
  if (grid[0] == 0 || grid[1] == 0 || grid[2] == 0) return GridState::Empty;
  for (axis = 0; axis < 3; ++axis)
    if (grid[axis] > limit[axis]) return GridState::TooLarge;
  return GridState::Fits;
}

Error grid_too_large(const std::string& kernel, const std::string& place, std::uint32_t axis, std::uint64_t blocks, std::uint64_t limit) {
  return make_error(ErrorCode::TooManyResources, "DynamicGridTooLarge",
                    std::string("the grid that the device holds for the launch has ") + std::to_string(blocks) + " blocks along " +
                        static_cast<char>('x' + axis) + ", and at most " + std::to_string(limit) +
                        " are possible (the device's limit, or the kernel counts positions in 32 bits); correct the kernel that writes it",
                    {.kernel = kernel, .place = place, .requested = blocks, .limit = limit});
}

bool read_grid(const void* from, const std::array<std::uint32_t, 3>& limit, std::array<std::uint32_t, 3>& grid, ir::FaultRecord& record) {
  std::memcpy(grid.data(), from, kGridBytes);
  std::uint32_t axis = 0;
  const GridState state = judge_grid(grid, limit, axis);
  if (state == GridState::Fits) return true;
  record.kind = state == GridState::Empty ? kFaultEmptyGrid : kFaultGridTooLarge;
  if (state == GridState::TooLarge) {
    record.dimension = axis;
    record.index = grid[axis];
    record.extent = limit[axis];
  }
  std::atomic_ref(record.state).store(2, std::memory_order_release);
  return false;
}

// --- the server's side ------------------------------------------------------------------------------------------------------

// What is wrong with the buffer that holds the grid.
std::optional<Error> LocalServer::check_grid_buffer(const LaunchPlan& plan, const Binding& grid) const {
  if (auto ok = usable(grid, "the grid of the launch"); !ok.has_value()) return of_launch(plan.facts, ok.error());
  const std::uint64_t bytes = empty(grid) ? 0 : grid.range.end - grid.range.begin;
  if (bytes >= kGridBytes && grid.range.begin % sizeof(std::uint32_t) == 0) return std::nullopt;
  return of_launch(plan.facts, make_error(ErrorCode::Validation, "DynamicGridBuffer",
                                          "the grid of the launch is three u32 (x, y and z) in a buffer, and the one that was given has " +
                                              std::to_string(bytes) + " bytes; give one with 12, aligned to 4",
                                          {.requested = bytes, .limit = kGridBytes, .numbers = Error::Numbers::NotEqual}));
}

std::array<std::uint32_t, 3> LocalServer::grid_limit(const LaunchPlan& plan, const LaunchConfig& config) const {
  std::array<std::uint32_t, 3> limit{};
  for (int axis = 0; axis < 3; ++axis) {
    std::uint64_t most = properties().max_grid[axis];
    if (plan.facts.global_id32[static_cast<std::size_t>(axis)]) most = std::min(most, (std::uint64_t{1} << 32) / config.block[axis]);
    limit[static_cast<std::size_t>(axis)] = static_cast<std::uint32_t>(most);
  }
  return limit;
}

// Whether the host has to know the grid before it can enqueue: where the device does not read it by itself; where more depends on it than
// how many blocks there are; and where the outputs carry a failure, which the launch ends or leaves alone.
bool LocalServer::host_reads_grid(const LaunchRequest& request, const CheckedLaunch& checked) {
  if (!device_->reads_grids() || checked.plan->requirements.uses_grid()) return true;
  if (checked.config.cooperative || checked.config.cluster != Dim3(1, 1, 1)) return true;
  const std::lock_guard lock(enqueue_);
  collect_uses(*checked.plan, request);
  io_sets(uses_, checked.plan->io, sets_);
  return store_.read_failure(sets_.covers).has_value();
}

Result<void> LocalServer::launch_dynamic(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked) {
  const LaunchPlan& plan = *checked.plan;
  if (auto ok = device_state(ErrorCode::LaunchDevicePoisoned); !ok.has_value()) return of_launch(plan.facts, ok.error());
  if (!host_reads_grid(request, checked)) return enqueue(stream, request, checked);
  std::optional<Error> unreadable;
  for (int i = 0; i < kTries; ++i) {
    if (auto error = skipped_by_grid(request, checked)) return of_launch(plan.facts, std::move(*error));
    std::array<std::uint32_t, 3> grid{};
    const Binding& binding = *request.dynamic_grid;
    const Binding piece{binding.memory, grid_range(binding).range};
    const Result<void> read = read_piece(stream, piece, piece, reinterpret_cast<std::byte*>(grid.data()));
    if (!read.has_value()) {
      unreadable = read.error();
      // A failure that has come to light: the launch is skipped, in the next round. Anything else stays.
      if (unreadable->code() == ErrorCode::Several) continue;
      break;
    }
    std::uint32_t axis = 0;
    switch (judge_grid(grid, grid_limit(plan, checked.config), axis)) {
      case GridState::Empty: return {};
      case GridState::TooLarge:
        return failed_launch(plan, request,
                             grid_too_large(plan.facts.kernel, plan.facts.place, axis, grid[axis], grid_limit(plan, checked.config)[axis]));
      case GridState::Fits: break;
    }
    CheckedLaunch known = checked;
    known.config.grid = Dim3(grid[0], grid[1], grid[2]);
    std::optional<Error> wrong = validate_config(plan.facts, known.config, properties(), this);
    if (!wrong) wrong = plan.requirements.check(known.config, request.args);
    if (!wrong) wrong = device_->prepare(*checked.program->code, known.config);
    if (wrong) return failed_launch(plan, request, std::move(*wrong));
    known.grid_known = true;
    return enqueue(stream, request, known);
  }
  return failed_launch(plan, request, std::move(*unreadable));
}

// Of a launch whose grid carries a failure: it is skipped, and what it was to write carries it too.
std::optional<Error> LocalServer::skipped_by_grid(const LaunchRequest& request, const CheckedLaunch& checked) {
  const std::lock_guard lock(enqueue_);
  const MemoryRange grid = grid_range(*request.dynamic_grid);
  collect_uses(*checked.plan, request);
  io_sets(uses_, checked.plan->io, sets_);
  ExecuteScope scope = ExecuteScope::launching(store_, *checked.program->name, {&grid, 1}, sets_.writes, {});
  const Outcome<void> outcome = scope.execute([] { return Result<void>(); });  // nothing happens yet
  if (outcome.kind == OutcomeKind::Skipped) return outcome.result.error();
  return std::nullopt;
}

}  // namespace kiln::rt
