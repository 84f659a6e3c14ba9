// The part of the server that enqueues launches: of its own programs, and what those of others have in common with them.
#include <algorithm>
#include <cstring>

#include "src/dynamic_grid.h"
#include "src/launch_validation.h"
#include "src/local_server.h"
#include "src/memory_order.h"

namespace kiln::rt {

void LaunchUses::take_many() {
  thread_local std::vector<MemoryRange> ranges;  // grow once a thread
  thread_local std::vector<Touch> touches;
  if (ranges.size() < 3 * most_) ranges.resize(3 * most_);
  if (touches.size() < most_) touches.resize(most_);
  ranges_ = ranges.data();
  touches_ = touches.data();
}

void LocalServer::fill_params(const LaunchPlan& plan, const LaunchRequest& request, Task& task, std::uint32_t slot,
                              const LaunchLogMemory* log) {
  std::byte* const params = task.reserve_params(plan.layout.bytes);
  const LaunchArg* const args = request.args.data();
  // Little-endian, as every host we run on. Nearly all are of 8 bytes or 4, and a copy of a size that is known is one store.
  const auto put = [params](std::uint32_t offset, std::uint64_t bits) { std::memcpy(params + offset, &bits, 8); };
  for (const auto& field : plan.fields.pointers) {
    const Binding& binding = args[field.param].binding;
    if (!empty(binding)) put(field.offset, reinterpret_cast<std::uint64_t>(address(binding)));
  }
  for (const auto& field : plan.fields.extents) put(field.offset, args[field.param].extents[field.dimension]);
  for (const auto& field : plan.fields.strides) put(field.offset, args[field.param].strides[field.dimension]);
  for (const auto& field : plan.fields.scalars) {
    const std::uint64_t bits = args[field.param].bits & field.mask;
    if (field.size == 8) std::memcpy(params + field.offset, &bits, 8);
    else if (field.size == 4) std::memcpy(params + field.offset, &bits, 4);
    else std::memcpy(params + field.offset, &bits, field.size);
  }
  if (plan.fields.fault) put(*plan.fields.fault, fault_address_ + slot * sizeof(ir::FaultRecord));
  if (log != nullptr && plan.fields.log) put(*plan.fields.log, log->memory.address);
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

void LocalServer::gather_uses(const LaunchPlan& plan, const LaunchRequest& request, LaunchUses& uses) {
  for (const LaunchPlan::Use& use : plan.uses) {
    const LaunchArg& arg = request.args[use.param];
    if (empty(arg.binding)) continue;
    Allocation& memory = *arg.binding.memory;
    uses.touch(memory, use.writes);
    const std::uint64_t begin = arg.binding.range.begin;
    const ByteRange bytes = use.element_bytes != 0 ? ByteRange{begin, begin + arg.extents[0] * use.element_bytes}  // as validated
                                                   : byte_hull(arg, plan.facts.params[use.param]);
    const MemoryRange where{memory.id, bytes, 1, use.name};
    if (where.range.empty()) continue;
    if (use.reads) uses.read(where);
    if (use.writes) uses.write(where, use.covers);
  }
}

// Under the lock, or in the lane of the stream's queue. `stamp`: the launch's place in the order, 0 where it has none yet.
// Whatever else is at work on the memory comes before it; in the lane nothing else is.
Result<Event> LocalServer::submit_in_order(std::uint64_t stream, HeldTask& task, const LaunchFacts& facts, const std::string& name,
                                           const LaunchUses& uses, HeldSlot* slot, bool conditional, bool in_lane, Stamp& stamp) {
  task->label = {&name, &facts.place, stream, true};
  ExecuteScope scope = ExecuteScope::launching_at(stamp, store_, name, uses.reads(), uses.writes(),
                                                  conditional ? std::span<const MemoryRange>() : uses.covers());
  task->order = stamp = scope.stamp();
  const std::uint32_t queue = queue_of(stream);
  Event at;
  const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
    After after;
    for (const LaunchUses::Touch& touch : uses.touched()) {
      if (touch.writes && (touch.memory->host_views != 0 || touch.memory->read_only))
        return of_launch(facts, *write_blocked(*touch.memory));
      if (in_lane) continue;
      // What comes before in the queue needs no waiting.
      if (touch.memory->last_write.queue != queue) after.add(touch.memory->last_write);
      if (!touch.writes) continue;
      touch.memory->last_reads.for_each([&](Event e) {
        if (e.queue != queue) after.add(e);
      });
    }
    const Result<Event> result = task.submit(queue, after);
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
  // Reads before writes: an allocation may be both.
  for (const LaunchUses::Touch& touch : uses.touched())
    if (!touch.writes) note_read(*touch.memory, at);
  for (const LaunchUses::Touch& touch : uses.touched())
    if (touch.writes) note_write(*touch.memory, at);
  return at;
}

Result<Event> LocalServer::submit_launch(std::unique_lock<EnqueueLock> lock, std::uint64_t stream, HeldTask& task, const LaunchFacts& facts,
                                         const std::shared_ptr<const std::string>& name, const LaunchUses& uses, HeldSlot* slot,
                                         bool conditional) {
  Stamp stamp = 0;
  const Result<Event> submitted = submit_in_order(stream, task, facts, *name, uses, slot, conditional, false, stamp);
  if (!submitted.has_value()) return submitted;
  const Event at = *submitted;
  const bool noted = log_.append({.kind = LogKind::Launch,
                                  .name = name,
                                  .stamp = stamp,
                                  .reads = uses.reads(),
                                  .writes = uses.writes(),
                                  .covers = uses.covers(),
                                  .stream = at.queue,
                                  .position = at.position,
                                  .slot = slot != nullptr ? slot->number() : kNoSlot,
                                  .conditional = conditional}) != 0;
  if (noted && slot != nullptr) slot->release();
  const bool confirm_now = time_to_confirm();
  bool alone = true;
  for (const LaunchUses::Touch& touch : uses.touched()) {
    alone = alone && touch.memory->lane.load(std::memory_order_relaxed) == at.queue;
    touch.memory->lane.store(static_cast<std::uint8_t>(at.queue), std::memory_order_relaxed);
  }
  enqueue_.launched(at.queue, alone);
  lock.unlock();
  if (!noted) {  // the log had no room: nobody will look at the record
    const CallOrder::Wait wait(*device_, After(at));
    if (!wait.allowed() && slot != nullptr) slot->release();  // for ever
    if (!wait.allowed()) return at;
    device_->wait(at);
    (void)device_->refused(at);  // its writes are claimed
    if (LaunchLogMemory* lines = slot != nullptr ? slots_.take_log(slot->number()) : nullptr) logs_.over(lines);
  }
  if (confirm_now) confirm_in_passing();
  return at;
}

// In the lane: its oldest launches that are over and left nothing need no place in the log, where nothing before them is in doubt and no
// failure was found that may concern them. That is what confirm() would find.
void LocalServer::settle(EnqueueLock::Lane& lane) {
  const std::span<const LaneNotes::Note> notes = lane.notes.notes();
  if (notes.empty() || !log_.empty() || notes.front().stamp < log_.last_finding()) return;
  if (!device_->done(notes[notes.size() / 2].at)) return;  // it has asked how far the queue has got
  const Event newest = notes.back().at;
  const bool all = device_->over(newest);
  std::uint32_t clean = 0;
  while (clean < notes.size() && (all || device_->over(notes[clean].at)) && slots_.left_nothing(notes[clean].slot)) ++clean;
  // Afterwards: what counts as over since the device was lost, or since it refused it, is not clean.
  if (device_->lost(newest) || device_->any_refused()) return;
  for (std::uint32_t i = 0; i < clean; ++i) {
    const std::uint32_t slot = notes[i].slot;
    slots_.set_aside(slot);
    if (lane.slot_count < lane.slots.size()) lane.slots[lane.slot_count++] = slot;
    else slots_.give_back({&slot, 1});
  }
  lane.notes.drop(clean);
  lane.since_confirm -= std::min(lane.since_confirm, clean);
}

// In the lane of the stream's queue alone, so that nobody else waits for it. Nothing: it takes the whole lock, and nothing is done yet.
std::optional<Result<void>> LocalServer::enqueue_in_lane(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked) {
  const LaunchPlan& plan = *checked.plan;
  const Program& program = *checked.program;
  const std::uint32_t queue = queue_of(stream);
  if (!program.logs.empty() || request.dynamic_grid != nullptr || !enqueue_.opens(queue)) return std::nullopt;
  HeldTask task(*device_);
  describe_launch(*task, *program.code, checked.config);
  LaunchUses uses(plan.uses.size());
  gather_uses(plan, request, uses);
  bool confirm_now = false;
  {
    const EnqueueLock::InLane in(enqueue_, queue);
    if (!in || device_->watcher() != nullptr || CallOrder::any_open()) return std::nullopt;
    EnqueueLock::Lane& lane = *in;
    const std::size_t ranges = uses.reads().size() + uses.writes().size() + uses.covers().size();
    if (!lane.notes.has_room(ranges)) settle(lane);
    if (!lane.notes.has_room(ranges)) enqueue_.flush(lane);
    if (!lane.notes.has_room(ranges)) return std::nullopt;
    if (lane.slot_count == 0) lane.slot_count = slots_.take({lane.slots.data(), EnqueueLock::Lane::kTaken});
    if (lane.slot_count == 0) return std::nullopt;
    // What other queues are at work on has a place in theirs, which are not ours to look at.
    const auto others = [&](Event e) { return e.queue != queue && e.position != 0 && !device_->over(e); };
    for (const LaunchUses::Touch& touch : uses.touched()) {
      std::uint8_t owner = touch.memory->lane.load(std::memory_order_relaxed);
      if (owner != queue && (owner != Allocation::kNoLane || !touch.memory->lane.compare_exchange_strong(
                                                                 owner, static_cast<std::uint8_t>(queue), std::memory_order_relaxed)))
        return std::nullopt;
      bool waits = others(touch.memory->last_write);
      if (touch.writes) touch.memory->last_reads.for_each([&](Event e) { waits = waits || others(e); });
      if (waits) return std::nullopt;
    }
    HeldSlot slot(slots_, logs_, lane.slots[--lane.slot_count]);
    slots_.begin(slot.number(), &program);
    task->fault = &slots_.record(slot.number());
    fill_params(plan, request, *task, slot.number(), nullptr);
    Stamp stamp = enqueue_.stamp_in(lane);
    const Result<Event> at = submit_in_order(stream, task, plan.facts, *program.name, uses, &slot, false, true, stamp);
    if (!at.has_value()) return at.error();
    lane.notes.add(*program.name, stamp, *at, slot.number(), uses.reads(), uses.writes(), uses.covers());
    slot.release();
    confirm_now = ++lane.since_confirm >= kConfirmEach;
    if (confirm_now) lane.since_confirm = 0;
  }
  if (confirm_now) confirm_in_passing();
  return Result<void>();
}

Result<void> LocalServer::enqueue(std::uint64_t stream, const LaunchRequest& request, const CheckedLaunch& checked) {
  const LaunchPlan& plan = *checked.plan;
  const Program& program = *checked.program;
  if (captures_.recording(stream)) {
    LaunchRequest as_checked = request;
    as_checked.config = checked.config;
    if (auto recorded = captures_.record_launch(stream, plan, program, as_checked)) return std::move(*recorded);
  }
  if (auto done = enqueue_in_lane(stream, request, checked)) return std::move(*done);
  const Result<std::uint32_t> number = take_fault_slot(program);
  if (!number.has_value()) return refused_launch(plan, request, number.error());
  HeldSlot slot(slots_, logs_, *number);
  LaunchLogMemory* const log = take_log(program);
  if (log != nullptr) slots_.keep_log(slot.number(), log);
  HeldTask task(*device_);
  describe_launch(*task, *program.code, checked.config);
  task->fault = &slots_.record(slot.number());
  const std::uint64_t moves_before = moves();
  fill_params(plan, request, *task, slot.number(), log);
  const Binding* const grid = request.dynamic_grid;
  const bool conditional = grid != nullptr && !checked.grid_known;
  if (conditional) { task->grid_limit = grid_limit(plan, checked.config); }

  LaunchUses uses(plan.uses.size() + (grid != nullptr ? 1 : 0));
  if (grid != nullptr) {
    uses.read(grid_range(*grid));
    uses.touch(*grid->memory, false);
  }
  gather_uses(plan, request, uses);

  std::unique_lock lock(enqueue_);
  if (moves() != moves_before) fill_params(plan, request, *task, slot.number(), log);  // a cleanup moved memory meanwhile
  if (conditional) task->dynamic_grid = address(*grid);
  // The name is not counted: programs live as long as the server.
  const auto event = submit_launch(std::move(lock), stream, task, plan.facts, {std::shared_ptr<const std::string>(), program.name.get()},
                                   uses, &slot, conditional);
  if (!event.has_value()) return event.error();
  return {};
}

}  // namespace kiln::rt
