// The part of the server that serves programs and memory which are not Kiln's own.
#include <algorithm>
#include <string>

#include "src/launch_validation.h"
#include "src/local_server.h"

namespace kiln::rt {

Result<Event> LocalServer::launch_loaded(std::uint64_t stream, const LoadedLaunch& launch) {
  if (auto ok = device_state(ErrorCode::LaunchDevicePoisoned); !ok.has_value()) return ok.error();
  LaunchFacts facts;
  facts.kernel = *launch.name;
  if (auto error = validate_config(facts, launch.config, properties())) return *error;
  const Dim3& grid = launch.config.grid;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Event{};
  std::size_t number = 0;
  for (const Use& use : launch.uses) {
    if (auto ok = usable(use.binding, "buffer " + std::to_string(number++) + " of " + facts.kernel); !ok.has_value()) return ok.error();
  }
  if (auto error = device_->prepare(launch.program, launch.config)) return *error;

  IoSets sets;
  std::vector<BufferUse> uses;
  for (const Use& use : launch.uses) uses.push_back({memory_range(use.binding), use.access, false});
  io_sets(uses, {}, sets);
  HeldTask task(*device_);
  task->kind = Task::Kind::Launch;
  task->program = &launch.program;
  const auto three = [](const Dim3& d) { return std::array<std::uint32_t, 3>{d.x, d.y, d.z}; };
  task->grid = three(launch.config.grid);
  task->block = three(launch.config.block);
  task->cluster = three(launch.config.cluster);
  task->cooperative = launch.config.cooperative;
  task->dynamic_shared = launch.config.shared_bytes;
  task->fault = nullptr;
  std::copy(launch.params.begin(), launch.params.end(), task->reserve_params(launch.params.size()));

  std::unique_lock lock(enqueue_);
  ExecuteScope scope = ExecuteScope::launching(store_, *launch.name, sets, &failure_count_);
  Event at;
  const auto writes = [](const Use& use) { return use.access != ir::Access::In; };
  const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
    After after;
    for (const Use& use : launch.uses) {
      if (use.binding.memory == nullptr) continue;
      after.add(use.binding.memory->last_write);
      if (writes(use)) after.add(use.binding.memory->last_reads);
    }
    const Result<Event> result = task.submit(queue_of(stream), after);
    if (!result.has_value()) return result.error();
    at = *result;
    return {};
  });
  if (outcome.kind != OutcomeKind::Executed) return outcome.result.error();
  for (const bool writing : {false, true}) {  // reads before writes: an allocation may be both
    for (const Use& use : launch.uses) {
      if (use.binding.memory == nullptr || writes(use) != writing) continue;
      Allocation& memory = *use.binding.memory;
      if (writing) {
        memory.last_write = at;
        memory.last_reads.clear();
      } else {
        memory.last_reads.add(at);
      }
    }
  }
  const bool noted = 0 != log_.append({.kind = LogKind::Launch,
                                       .name = launch.name,
                                       .stamp = scope.stamp(),
                                       .reads = sets.reads,
                                       .writes = sets.writes,
                                       .covers = sets.covers,
                                       .stream = at.queue,
                                       .position = at.position,
                                       .slot = kNoSlot});
  const bool confirm_now = time_to_confirm();
  lock.unlock();
  if (!noted) device_->wait(at);  // as in enqueue()
  if (confirm_now) confirm();
  return at;
}

Result<Memory> LocalServer::adopt(std::uint64_t address, std::uint64_t bytes, std::shared_ptr<const void> owner) {
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
  storage->owner = owner != nullptr ? std::move(owner) : std::make_shared<char>();
  auto memory = std::make_shared<Allocation>(shared_from_this(), next_memory_.fetch_add(1, std::memory_order_relaxed), std::move(storage));
  adopted_.push_back({address, bytes, memory});
  return memory;
}

}  // namespace kiln::rt
