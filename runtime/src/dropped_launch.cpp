// Launches that do not run, because a mode override says so: their kernels are obtained or queued, and no buffer is touched.
#include "src/launch_modes.h"
#include "src/launch_validation.h"
#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln::rt {

bool aligned_to_16(const LaunchRequest& request) {
  for (const LaunchArg& arg : request.args)
    if (arg.is_buffer && !empty(arg.binding) && reinterpret_cast<std::uintptr_t>(address(arg.binding)) % 16 != 0) return false;
  return true;
}

// What is wrong is told, and claims nothing: the launch was not to write either.
Result<void> LocalServer::drop_launch(std::uint64_t stream, const LaunchPlan& plan, const LaunchRequest& request, LaunchMode mode) {
  const auto wrong = [&](Error error) { return of_launch(plan.facts, std::move(error)); };
  CheckedLaunch checked;
  checked.plan = &plan;
  checked.config = request.config;
  if (auto ok = validate_arguments_of(plan, request); !ok.has_value()) return wrong(ok.error());
  if (request.dynamic_grid != nullptr) {
    if (auto error = check_grid_buffer(plan, *request.dynamic_grid)) return std::move(*error);
    checked.config.grid = Dim3();
  }
  if (request.config.elements != 0) {
    if (auto refusal = choose_block(request, false, checked, false)) return wrong(std::move(refusal->error));
  }
  const Dim3 block = checked.config.block;
  bool nothing_to_do = false;
  if (auto error = validate(plan, request, checked.config, nothing_to_do)) return wrong(std::move(*error));
  if (nothing_to_do) return {};
  if (request.unfit != nullptr) return wrong(*request.unfit);
  if (plan.error) return wrong(*plan.error);
  const bool aligned16 = aligned_to_16(request);
  if (mode == LaunchMode::Queue) {
    if (programs_.queue(plan, *request.variant, request.mode, block, aligned16)) note_queued(shared_from_this());
  } else if (const auto program = programs_.get(plan, *request.variant, request.mode, block, aligned16); !program.has_value()) {
    return wrong(program.error());
  }
  captures_.lacks(stream, plan, request);
  return {};
}

}  // namespace kiln::rt
