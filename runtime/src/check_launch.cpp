// The part of the server that checks launches: all that can be refused before anything is touched, and the program that will run.
#include <algorithm>
#include <string>

#include "src/checked_before.h"
#include "src/launch_modes.h"
#include "src/launch_validation.h"
#include "src/local_server.h"
#include "src/make_error.h"
#include "src/memory_order.h"

namespace kiln::rt {
namespace {

constexpr std::uint32_t kUsualThreads = 256;

std::uint64_t ceil_div(std::uint64_t n, std::uint64_t d) { return n / d + (n % d != 0); }

}  // namespace

Error no_kernel() { return make_error(ErrorCode::Validation, "NoKernel", "the launch names no kernel"); }

Result<void> LocalServer::launch_now(std::uint64_t stream, const LaunchRequest& request, std::optional<LaunchConfig>* chosen) {
  if (request.variant == nullptr) return no_kernel();
  if (any_override()) {
    if (const LaunchMode mode = mode_of_launch(*this, stream); drops_launch(mode))
      return drop_launch(stream, programs_.plan(*request.variant, request.mode), request, mode);
  }
  CheckedLaunch checked;
  if (auto refusal = check_launch(request, checked)) {
    return refusal->no_code ? failed_launch(*checked.plan, request, std::move(refusal->error))
                            : refused_launch(*checked.plan, request, std::move(refusal->error));
  }
  if (chosen != nullptr) *chosen = checked.config;
  return launch_checked(stream, request, checked);
}

// `request` was checked, now or earlier.
Result<void> LocalServer::launch_checked(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked) {
  if (checked.nothing_to_do) {
    if (auto ok = device_state(ErrorCode::LaunchDevicePoisoned); !ok.has_value()) return of_launch(checked.plan->facts, ok.error());
    return {};
  }
  for (const LaunchArg& arg : request.args) {
    if (!arg.is_buffer || empty(arg.binding) || !arg.binding.memory->storage->unmapped.load(std::memory_order_acquire)) continue;
    if (auto ok = map_late(*arg.binding.memory); !ok.has_value()) return failed_launch(*checked.plan, request, ok.error());
  }
  if (request.dynamic_grid != nullptr) {
    if (auto ok = map_late(*request.dynamic_grid->memory); !ok.has_value()) return failed_launch(*checked.plan, request, ok.error());
    if (auto ok = captures_.refuse(stream, "a launch whose grid is read on the device", Captures::Refused::IsPart); !ok.has_value())
      return refused_launch(*checked.plan, request, ok.error());
    return launch_dynamic(stream, request, checked);
  }
  return enqueue(stream, request, checked);
}

std::optional<LocalServer::Refusal> LocalServer::check_launch(const LaunchRequest& request, CheckedLaunch& checked) {
  const LaunchPlan& plan = programs_.plan(*request.variant, request.mode);
  checked.plan = &plan;
  const bool usual = request.dynamic_grid == nullptr && request.unfit == nullptr;
  if (usual && CheckedBefore::find(*this, plan, request, moves(), checked)) return std::nullopt;
  const std::uint64_t moves_before = moves();
  checked.config = request.config;
  if (auto ok = validate_arguments_of(plan, request); !ok.has_value()) return Refusal{ok.error()};
  if (request.dynamic_grid != nullptr) {
    if (auto error = check_grid_buffer(plan, *request.dynamic_grid)) return Refusal{std::move(*error)};
    checked.config.grid = Dim3();  // for what does not depend on it
  }
  const bool aligned16 = aligned_to_16(request);
  if (request.config.elements != 0) {
    if (auto refusal = choose_block(request, aligned16, checked)) return refusal;
  }
  if (auto error = validate(plan, request, checked.config, checked.nothing_to_do)) return Refusal{std::move(*error)};
  if (checked.nothing_to_do) return std::nullopt;
  if (request.unfit != nullptr) return Refusal{*request.unfit};
  if (auto refusal = find_program(request, aligned16, checked)) return refusal;
  if (request.dynamic_grid != nullptr && checked.config.cluster != Dim3(1, 1, 1)) return std::nullopt;  // once the grid is known
  if (auto error = device_->prepare(*checked.program->code, checked.config)) return Refusal{std::move(*error)};
  if (usual) CheckedBefore::keep(plan, request, moves_before, checked);
  return std::nullopt;
}

std::optional<LocalServer::Refusal> LocalServer::find_program(const LaunchRequest& request, bool aligned16, CheckedLaunch& checked) {
  if (checked.plan->error) return Refusal{*checked.plan->error, true};
  const Result<const Program*> program = programs_.get(*checked.plan, *request.variant, request.mode, checked.config.block, aligned16);
  if (!program.has_value()) return Refusal{program.error(), true};
  checked.program = *program;
  return std::nullopt;
}

// Grid and block of a launch that leaves them to the runtime: `elements` threads along x.
std::optional<LocalServer::Refusal> LocalServer::choose_block(const LaunchRequest& request, bool aligned16, CheckedLaunch& checked,
                                                              bool ask) {
  const LaunchFacts& facts = checked.plan->facts;
  LaunchConfig& config = checked.config;
  const std::uint64_t n = config.elements;
  config.elements = 0;
  if (facts.block_size[0] != 0) {
    config.block = Dim3(facts.block_size[0], facts.block_size[1], facts.block_size[2]);
  } else {
    const std::uint32_t warp = properties().warp_size;
    std::uint32_t most = std::min(properties().max_threads_per_block, properties().max_block.x);
    if (facts.max_threads != 0) most = std::min(most, facts.max_threads);
    if (most > warp) most = most / warp * warp;
    config.block = Dim3(std::min(most, kUsualThreads));
    if (ask && device_->has_occupancy()) {
      if (request.unfit != nullptr) return Refusal{*request.unfit};
      if (auto refusal = find_program(request, aligned16, checked)) return refusal;
      auto threads = device_->best_block(*checked.program->code, config.shared_bytes, most);
      if (!threads.has_value()) return Refusal{of_launch(facts, threads.error())};
      config.block = Dim3(std::max(*threads, 1u));
    }
    // Fewer blocks than there are workers for leave some idle.
    std::uint32_t& threads = config.block.x;
    while (threads > warp && ceil_div(n, threads) < properties().workers) threads = std::max(warp, threads / 2 / warp * warp);
  }
  std::uint64_t blocks = ceil_div(n, config.block.x);
  if (config.cluster.x > 1) blocks = ceil_div(blocks, config.cluster.x) * config.cluster.x;
  if (blocks > properties().max_grid.x) {
    return Refusal{of_launch(
        facts, make_error(ErrorCode::TooManyResources, "DeviceDimensionExceeded",
                          std::to_string(n) + " threads are " + std::to_string(blocks) + " blocks of " + std::to_string(config.block.x) +
                              ", and " + label() + " takes at most " + std::to_string(properties().max_grid.x) +
                              " along x; launch several times, or give each thread more to do",
                          {.requested = blocks, .limit = properties().max_grid.x}))};
  }
  config.grid = Dim3(blocks);
  return std::nullopt;
}

// The arguments fit the signature and are memory of this device.
Result<void> LocalServer::validate_arguments_of(const LaunchPlan& plan, const LaunchRequest& request) const {
  if (auto error = validate_arguments(plan.facts, request.args)) return *error;
  for (std::size_t i = 0; i < request.args.size(); ++i) {
    if (!request.args[i].is_buffer) continue;
    const Binding& binding = request.args[i].binding;
    if (is_usable(binding)) continue;
    return usable(binding, argument(plan.facts, i)).error();
  }
  return {};
}

// What else can be refused before anything is touched.
std::optional<Error> LocalServer::validate(const LaunchPlan& plan, const LaunchRequest& request, const LaunchConfig& config,
                                           bool& nothing_to_do) const {
  if (auto error = validate_config(plan.facts, config, properties(), this)) return error;
  const Dim3& grid = config.grid;
  nothing_to_do = grid.x == 0 || grid.y == 0 || grid.z == 0;
  if (nothing_to_do) return std::nullopt;
  if (!plan.error) {
    if (auto error = validate_extents(plan.facts, request.args)) return error;
    const bool later = request.dynamic_grid != nullptr && plan.requirements.uses_grid();
    if (!later) {
      if (auto error = plan.requirements.check(config, request.args)) return error;
    }
  }
  return validate_aliasing(plan.facts, request.args);
}

}  // namespace kiln::rt
