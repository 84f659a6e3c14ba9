// The part of the server that enqueues launches: of its own programs, and what those of others have in common with them.
#include <cstring>

#include "src/dynamic_grid.h"
#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln::rt {

void LocalServer::fill_params(const LaunchPlan& plan, const LaunchRequest& request, Task& task, std::uint32_t slot,
                              const LaunchLogMemory* log) {
  std::byte* params = task.reserve_params(plan.layout.bytes);
  for (const ir::ParamField& field : plan.layout.fields) {
    const LaunchArg* arg = field.param != ir::kNone ? &request.args[field.param] : nullptr;
    std::uint64_t bits = 0;
    switch (field.kind) {
      case ir::ParamField::Kind::Pointer: bits = empty(arg->binding) ? 0 : reinterpret_cast<std::uint64_t>(address(arg->binding)); break;
      case ir::ParamField::Kind::Extent: bits = arg->extents[field.dimension]; break;
      case ir::ParamField::Kind::Stride: bits = arg->strides[field.dimension]; break;
      case ir::ParamField::Kind::Scalar: bits = arg->bits & ir::value_mask(field.type); break;
      case ir::ParamField::Kind::Fault: bits = fault_address_ + slot * sizeof(ir::FaultRecord); break;
      case ir::ParamField::Kind::Log: bits = log != nullptr ? log->memory.address : 0; break;
    }
    std::memcpy(params + field.offset, &bits, field.size);  // little-endian, as every host we run on
  }
}

void LocalServer::describe_launch(Task& task, const DeviceProgram& program, const LaunchConfig& config) {
  const auto three = [](const Dim3& d) { return std::array<std::uint32_t, 3>{d.x, d.y, d.z}; };
  task.kind = Task::Kind::Launch;
  task.program = &program;
  task.grid = three(config.grid);
  task.block = three(config.block);
  task.cluster = three(config.cluster);
  task.cooperative = config.cooperative;
  task.dynamic_grid = nullptr;
  task.dynamic_shared = config.shared_bytes;
}

Result<Event> LocalServer::submit_launch(std::unique_lock<std::mutex> lock, std::uint64_t stream, HeldTask& task, const LaunchFacts& facts,
                                         const std::shared_ptr<const std::string>& name, HeldSlot* slot, bool conditional) {
  task->label = {name.get(), &facts.place, stream, true};
  Event at;
  bool noted = false, confirm_now = false;
  {
    ExecuteScope scope = ExecuteScope::launching(store_, *name, sets_.reads, sets_.writes,
                                                 conditional ? std::span<const MemoryRange>() : std::span<const MemoryRange>(sets_.covers));
    const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
      After after;
      for (const Touch& touch : touched_) {
        if (touch.writes && (touch.memory->host_views != 0 || touch.memory->read_only))
          return of_launch(facts, *write_blocked(*touch.memory));
        if (touch.writes) order_write(*touch.memory, after);
        else order_read(*touch.memory, after);
      }
      const Result<Event> result = task.submit(queue_of(stream), after);
      if (!result.has_value()) {
        // It may have run, and what ended it may be its own trap.
        LaunchLogMemory* lines = slot != nullptr && device_->poisoned() ? slots_.take_log(slot->number()) : nullptr;
        if (lines != nullptr) logs_.over(lines);
        return of_launch(facts, result.error());
      }
      at = *result;
      return {};
    });
    if (outcome.kind != OutcomeKind::Executed) return of_launch(facts, outcome.result.error());
    for (const bool writing : {false, true}) {  // reads before writes: an allocation may be both
      for (const Touch& touch : touched_) {
        if (touch.writes != writing) continue;
        if (writing) note_write(*touch.memory, at);
        else note_read(*touch.memory, at);
      }
    }
    noted = log_.append({.kind = LogKind::Launch,
                         .name = name,
                         .stamp = scope.stamp(),
                         .reads = sets_.reads,
                         .writes = sets_.writes,
                         .covers = sets_.covers,
                         .stream = at.queue,
                         .position = at.position,
                         .slot = slot != nullptr ? slot->number() : kNoSlot,
                         .conditional = conditional}) != 0;
    if (noted && slot != nullptr) slot->release();
    confirm_now = time_to_confirm();
  }
  lock.unlock();
  if (!noted) {  // the log had no room: nobody will look at the record
    const CallOrder::Wait wait(*device_, After(at));
    if (!wait.allowed() && slot != nullptr) slot->release();  // for ever
    if (!wait.allowed()) return at;
    device_->wait(at);
    if (LaunchLogMemory* lines = slot != nullptr ? slots_.take_log(slot->number()) : nullptr) logs_.over(lines);
  }
  if (confirm_now) confirm();
  return at;
}

Result<void> LocalServer::enqueue(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked) {
  const LaunchPlan& plan = *checked.plan;
  const Program& program = *checked.program;
  if (captures_.recording(stream)) {
    LaunchRequest as_checked = request;
    as_checked.config = checked.config;
    if (auto recorded = captures_.record_launch(stream, plan, program, as_checked)) return std::move(*recorded);
  }
  const Result<std::uint32_t> number = take_fault_slot(program);
  if (!number.has_value()) return refused_launch(plan, request, number.error());
  HeldSlot slot(slots_, logs_, *number);
  LaunchLogMemory* const log = take_log(program);
  slots_.keep_log(slot.number(), log);
  HeldTask task(*device_);
  describe_launch(*task, *program.code, checked.config);
  task->fault = &slots_.record(slot.number());
  const std::uint64_t moves_before = moves();
  fill_params(plan, request, *task, slot.number(), log);
  const Binding* const grid = request.dynamic_grid;
  const bool conditional = grid != nullptr && !checked.grid_known;
  if (conditional) { task->grid_limit = grid_limit(plan, checked.config); }

  std::unique_lock lock(enqueue_);
  if (moves() != moves_before) fill_params(plan, request, *task, slot.number(), log);  // a cleanup moved memory meanwhile
  if (conditional) task->dynamic_grid = address(*grid);
  collect_uses(plan, request);
  io_sets(uses_, plan.io, sets_);
  touched_.clear();
  if (grid != nullptr) {
    sets_.reads.push_back(grid_range(*grid));
    touched_.push_back({grid->memory.get(), false});
  }
  for_each_used(plan, request, [&](const Memory& memory, bool writes) { touched_.push_back({memory.get(), writes}); });
  // The name is not counted: programs live as long as the server.
  const auto event = submit_launch(std::move(lock), stream, task, plan.facts, {std::shared_ptr<const std::string>(), program.name.get()},
                                   &slot, conditional);
  if (!event.has_value()) return event.error();
  return {};
}

}  // namespace kiln::rt
