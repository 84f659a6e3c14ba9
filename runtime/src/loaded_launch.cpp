// The part of the server that serves programs and memory which are not Kiln's own.
#include <algorithm>
#include <string>

#include "src/launch_validation.h"
#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln::rt {

Result<Event> LocalServer::launch_loaded_now(std::uint64_t stream, const LoadedLaunch& launch) {
  LaunchFacts facts;
  facts.kernel = *launch.name;
  if (auto ok = device_state(ErrorCode::LaunchDevicePoisoned); !ok.has_value()) return of_launch(facts, ok.error());
  if (auto error = validate_config(facts, launch.config, properties())) return refused_loaded(launch.uses, *error);
  const Dim3& grid = launch.config.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Event{};
  if (auto error = device_->prepare(launch.program, launch.config)) return refused_loaded(launch.uses, of_launch(facts, *error));

  HeldTask task(*device_);
  describe_launch(*task, launch.program, launch.config);
  task->fault = nullptr;
  std::copy(launch.params.begin(), launch.params.end(), task->reserve_params(launch.params.size()));

  std::unique_lock lock(enqueue_);
  uses_.clear();
  touched_.clear();
  for (const Use& use : launch.uses) {
    uses_.push_back({memory_range(use.binding), use.access, false});
    if (!empty(use.binding)) touched_.push_back({use.binding.memory.get(), use.access != ir::Access::In});
  }
  io_sets(uses_, {}, sets_);
  return submit_launch(std::move(lock), stream, task, facts, launch.name, nullptr);
}

Error LocalServer::refused_loaded(std::span<const Use> uses, Error error) {
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

Result<Memory> LocalServer::adopt_now(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner) {
  if (bytes == 0) return Memory();
  if (auto ok = device_->check_foreign(address, bytes); !ok.has_value()) return ok.error();
  const std::lock_guard lock(adopted_mutex_);
  std::erase_if(adopted_, [](const Adopted& a) { return a.memory.expired(); });
  for (const Adopted& a : adopted_) {
    if (a.address == address && a.bytes == bytes) {
      if (Memory memory = a.memory.lock()) return memory;
    } else if (address < a.address + a.bytes && a.address < address + bytes) {
      Error::Data data;
      data.code = ErrorCode::Validation;
      data.rule = "AliasingArguments";
      data.message = "memory of " + std::to_string(bytes) + " bytes overlaps other memory that was adopted (" + std::to_string(a.bytes) +
                     " bytes); adopt the whole once and take views of it";
      return Error(std::move(data));
    }
  }
  auto storage = std::make_unique<Storage>();
  storage->data = reinterpret_cast<void*>(address);
  storage->bytes = bytes;
  storage->owner = std::make_shared<std::shared_ptr<const void>>(std::move(owner));  // never null, whatever the owner points to
  auto memory = std::make_shared<Allocation>(shared_from_this(), next_memory_.fetch_add(1, std::memory_order_relaxed), std::move(storage));
  adopted_.push_back({address, bytes, memory});
  return memory;
}

}  // namespace kiln::rt
