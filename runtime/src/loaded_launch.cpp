// The part of the server that serves programs which are not Kiln's own.
#include <algorithm>
#include <string>

#include "src/launch_modes.h"
#include "src/launch_validation.h"
#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln::rt {

Result<Event> LocalServer::launch_loaded_now(std::uint64_t stream, const LoadedLaunch& launch) {
  LaunchFacts facts;
  facts.kernel = *launch.name;
  if (auto ok = device_state(ErrorCode::LaunchDevicePoisoned); !ok.has_value()) return of_launch(facts, ok.error());
  if (auto error = validate_config(facts, launch.config, properties(), this)) return refused_loaded(stream, launch.uses, *error);
  const Dim3& grid = launch.config.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Event{};
  if (auto ok = captures_.refuse(stream, "a launch of a module that Kiln did not compile", Captures::Refused::IsPart); !ok.has_value())
    return refused_loaded(stream, launch.uses, of_launch(facts, ok.error()));
  if (dropped_now(*this, stream)) return Event{};
  if (auto error = device_->prepare(launch.program, launch.config)) return refused_loaded(stream, launch.uses, of_launch(facts, *error));

  HeldTask task(*device_);
  describe_launch(*task, launch.program, launch.config);
  task->fault = nullptr;
  std::copy(launch.params.begin(), launch.params.end(), task->reserve_params(launch.params.size()));

  LaunchUses uses(launch.uses.size());
  for (const Use& use : launch.uses) {
    if (empty(use.binding)) continue;
    const bool writes = use.access != ir::Access::In;
    uses.touch(*use.binding.memory, writes);
    if (use.access != ir::Access::Out) uses.read(memory_range(use.binding));
    if (writes) uses.write(memory_range(use.binding), use.access == ir::Access::Out);
  }
  return submit_launch(std::unique_lock(enqueue_), stream, task, facts, launch.name, uses, nullptr);
}

Error LocalServer::refused_loaded(std::uint64_t stream, std::span<const Use> uses, Error error) {
  if (dropped_now(*this, stream)) return error;  // it was not to write either
  std::vector<RefusedUse> all;
  for (const Use& use : uses) {
    if (use.binding.memory == nullptr) continue;
    ByteRange range = use.binding.range;
    range.end = std::min(range.end, use.binding.memory->storage->bytes);
    all.push_back({&use.binding.memory, range, use.access == ir::Access::Out, nullptr});
  }
  refuse(all, error);
  return error;
}

}  // namespace kiln::rt
