#include "src/local_server.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>

#include "src/background.h"
#include "src/launch_modes.h"
#include "src/launch_validation.h"
#include "src/make_error.h"
#include "src/memory_order.h"
#include "src/profile/timelines.h"
#include "src/read_turn.h"
#include "src/server_log.h"
#include "src/stream_calls.h"

namespace kiln {

namespace rt {
namespace {

std::uint64_t size(const Binding& binding) { return empty(binding) ? 0 : binding.range.end - binding.range.begin; }

}  // namespace

MemoryRange memory_range(const Binding& binding) { return empty(binding) ? MemoryRange{} : MemoryRange{binding.memory->id, binding.range}; }

std::shared_ptr<Server> make_server(std::unique_ptr<Device> device, Compiler* compiler) {
  auto server = std::make_shared<LocalServer>(std::move(device), compiler);
  timeline_sees(server);
  return server;
}

LocalServer::LocalServer(std::unique_ptr<Device> device, Compiler* compiler)
    : device_(std::move(device)),
      memory_(std::make_unique<MemoryManager>(*device_, configured_memory(device_->properties()))),
      fault_address_(device_->fault_address()),
      programs_(*device_, compiler),
      slots_(device_->fault_records()),
      logs_(*device_),
      background_(std::make_unique<Background>(*device_)) {
  device_->ask_for_trap([this] {
    auto trap = slots_.trap();
    return trap ? trap : captures_.instances().trap();
  });
  log_.tell(&profiler_);
}

LocalServer::~LocalServer() {
  if (forked()) {
    profiler_.forget();
    (void)memory_.release();
    (void)device_.release();  // of the parent's
    (void)background_.release();
    logs_.forget();
    captures_.forget();
    return;
  }
  end_own_call(*device_);
  background_->serve_own_queue();
  for (std::uint32_t q = 0; q < kQueues; ++q) device_->wait(device_->last(q));  // before the programs go
  if (const std::uint64_t timeline = running_timeline().load(std::memory_order_relaxed); timeline != 0 && profiler_.recording()) {
    try {
      timeline_keeps(timeline, profiler_.finish(timeline, label()));
    } catch (const std::bad_alloc&) {}  // the trace lacks this device
  }
  device_->ask_for_trap({});
  background_.reset();
}

// --- transfers ------------------------------------------------------------------------------------------------------------

// Enqueues a copy, fill or upload under its scope; or the caller's own work, for whose turn it is to wait.
Result<void> LocalServer::transfer(std::uint64_t stream, HeldTask& task, LogKind kind, const Binding& to, const Binding* from,
                                   std::optional<CallOrder::Wait>* turn) {
  const MemoryRange target = memory_range(to), source = from != nullptr ? memory_range(*from) : MemoryRange{};
  task->to = at_byte(to.range.begin);
  if (from != nullptr) task->from = at_byte(from->range.begin);
  return transfer(stream, task, kind, *to.memory, {&target, 1}, from != nullptr ? from->memory.get() : nullptr,
                  {&source, from != nullptr ? 1u : 0u}, nullptr, turn);
}

Result<void> LocalServer::transfer(std::uint64_t stream, HeldTask& task, LogKind kind, Allocation& to, std::span<const MemoryRange> writes,
                                   Allocation* from, std::span<const MemoryRange> reads, Event* place,
                                   std::optional<CallOrder::Wait>* turn) {
  const Result<void> allowed = captures_.refuse(stream, "a copy of strided or pinned memory", Captures::Refused::IsPart);
  task->label.stream = stream;
  task->label.known = true;
  for (Allocation* memory : {&to, from}) {
    if (memory == nullptr) continue;
    if (auto ok = map_late(*memory); !ok.has_value()) {
      const std::lock_guard lock(enqueue_);
      return ExecuteScope::failed_writing(store_, writes, ok.error());
    }
  }
  std::unique_lock lock(enqueue_);
  ExecuteScope scope = ExecuteScope::launching(store_, kind == LogKind::Copy ? "copy" : "write", reads, writes, writes);
  Event at;
  const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
    if (!allowed.has_value()) return allowed;
    if (auto error = write_blocked(to)) return std::move(*error);
    After after;
    order_write(to, after);
    if (from != nullptr) order_read(*from, after);
    task->to = address(to, task->to);
    if (from != nullptr) task->from = address(*from, task->from);
    if (turn != nullptr) {
      After before = after;
      before.add(device_->last(queue_of(stream)));
      turn->emplace(*device_, before);
      if (!(*turn)->allowed()) return CallOrder::waits_for_itself();
    }
    const Result<Event> result = task.submit(queue_of(stream), after);
    if (!result.has_value()) return result.error();
    at = *result;
    return {};
  });
  if (outcome.kind != OutcomeKind::Executed) return outcome.result;
  if (from != nullptr) note_read(*from, at);
  note_write(to, at);
  if (place != nullptr) *place = at;
  LogNote note;
  note.kind = device_->host_addressable() ? kind : LogKind::Copy;  // what the device does itself it may still refuse when its turn comes
  note.stamp = scope.stamp();
  note.reads = reads;
  note.writes = note.covers = writes;
  note.stream = at.queue;
  note.position = at.position;
  log_.append(note);
  const bool confirm_now = time_to_confirm();
  lock.unlock();
  if (confirm_now) confirm_in_passing();
  return {};
}

Result<void> LocalServer::write_now(std::uint64_t stream, const Binding& to, const void* from) {
  if (auto ok = usable(to, "the target of the write", kItsStream); !ok.has_value()) return refused_transfer(to, nullptr, ok.error());
  if (empty(to)) return device_state(ErrorCode::IoDevicePoisoned);
  if (auto ok = map_for(to, to); !ok.has_value()) return ok;
  if (auto recorded = captures_.record_write(stream, to, from)) return std::move(*recorded);
  if (!device_->host_addressable()) return write_staged(stream, to, static_cast<const std::byte*>(from));
  const std::uint64_t bytes = size(to);
  After after;
  {
    const std::lock_guard lock(enqueue_);
    order_write(*to.memory, after);
  }
  // Where the write would have to wait, the bytes are set aside, so that the caller need not.
  if (bytes <= device_->max_staging() && device_->busy(queue_of(stream), after)) {
    if (auto staging = device_->stage(bytes); staging.has_value()) return upload(stream, to, from, std::move(*staging));
  }  // else the caller waits
  HeldTask task(*device_);
  task->kind = Task::Kind::Host;
  task->bytes = bytes;
  Task& turn = *task;
  std::optional<CallOrder::Wait> wait;
  if (auto ok = transfer(stream, task, LogKind::HostWrite, to, nullptr, &wait); !ok.has_value()) return ok;
  device_->begin_host(turn);
  std::memcpy(turn.to, from, bytes);
  device_->finish_host(turn);
  return {};
}

std::optional<Error> LocalServer::write_blocked(const Allocation& memory) const {
  if (!memory.read_only && memory.host_views == 0) return std::nullopt;
  if (memory.read_only)
    return make_error(ErrorCode::Validation, "ReadOnlyMemory",
                      "the memory was imported to be read only, and this would write it; copy it first");
  return make_error(ErrorCode::Validation, "HostViewOpen",
                    "the host has a view of this memory's bytes, and this would write them; let the view go first");
}

// In pieces, as far as the device stages at a time. All are attempted: what one of them leaves behind must not pass for written.
Result<void> LocalServer::write_staged(std::uint64_t stream, const Binding& to, const std::byte* from) {
  Result<void> first;
  for (std::uint64_t at = to.range.begin; at < to.range.end;) {
    const std::uint64_t end = std::min(to.range.end, at + device_->max_staging());
    const Binding piece{to.memory, {at, end}};
    Result<void> result;
    if (auto staging = device_->stage(end - at); staging.has_value()) {
      result = upload(stream, piece, from + (at - to.range.begin), std::move(*staging));
    } else {
      const MemoryRange target = memory_range(piece);
      const std::lock_guard lock(enqueue_);
      result = ExecuteScope::failed_writing(store_, {&target, 1}, staging.error());
    }
    if (first.has_value()) first = std::move(result);
    at = end;
  }
  return first;
}

Result<void> LocalServer::upload(std::uint64_t stream, const Binding& to, const void* from, Staging staging) {
  std::memcpy(staging.data(), from, size(to));
  HeldTask task(*device_);
  task->kind = Task::Kind::Upload;
  task->bytes = size(to);
  task->staging = std::move(staging);
  return transfer(stream, task, LogKind::HostWrite, to, nullptr);
}

Result<void> LocalServer::fill_zero_now(std::uint64_t stream, const Binding& to) {
  if (auto ok = usable(to, "the target of the fill", kItsStream); !ok.has_value()) return refused_transfer(to, nullptr, ok.error());
  if (empty(to)) return device_state(ErrorCode::IoDevicePoisoned);
  if (auto ok = map_for(to, to); !ok.has_value()) return ok;
  if (auto recorded = captures_.record_fill(stream, to)) return std::move(*recorded);
  HeldTask task(*device_);
  task->kind = Task::Kind::Zero;
  task->bytes = size(to);
  return transfer(stream, task, LogKind::HostWrite, to, nullptr);
}

Result<void> LocalServer::copy_now(std::uint64_t stream, const Binding& to, const Binding& from) {
  if (auto ok = usable(to, "the target of the copy", kAcross); !ok.has_value()) return refused_transfer(to, &from, ok.error());
  if (auto ok = usable(from, "the source of the copy", kAcross); !ok.has_value()) return refused_transfer(to, &from, ok.error());
  if (size(to) != size(from)) {
    return refused_transfer(to, &from,
                            make_error(ErrorCode::Validation, "CopySize",
                                       "a copy of " + std::to_string(size(from)) + " bytes to " + std::to_string(size(to)) + " bytes"));
  }
  if (empty(to)) return device_state(ErrorCode::IoDevicePoisoned);
  if (to.memory == from.memory && to.range.begin < from.range.end && from.range.begin < to.range.end)
    return refused_transfer(to, &from, make_error(ErrorCode::Validation, "CopyOverlap", "source and target of the copy overlap"));
  for (const Binding* used : {&to, &from})
    if (auto ok = map_for(to, *used); !ok.has_value()) return ok;
  if (auto recorded = captures_.record_copy(stream, to, from)) return std::move(*recorded);
  HeldTask task(*device_);
  task->kind = Task::Kind::Copy;
  task->bytes = size(to);
  return transfer(stream, task, LogKind::Copy, to, &from);
}

Result<void> LocalServer::read_now(std::uint64_t stream, const Binding& from, void* to) {
  if (auto ok = usable(from, "what is read", kItsStream); !ok.has_value()) return ok;
  if (empty(from)) return device_state(ErrorCode::IoDevicePoisoned);
  if (auto ok = captures_.refuse(stream, "a read", Captures::Refused::Waits); !ok.has_value()) return ok;
  if (auto ok = map_late(*from.memory); !ok.has_value()) return ok;
  const std::uint64_t step = device_->host_addressable() ? size(from) : device_->max_staging();
  auto* target = static_cast<std::byte*>(to);
  for (std::uint64_t at = from.range.begin; at < from.range.end;) {
    const std::uint64_t end = std::min(from.range.end, at + step);
    if (auto ok = read_piece(stream, from, {from.memory, {at, end}}, target + (at - from.range.begin)); !ok.has_value()) return ok;
    at = end;
  }
  return {};
}

// Copies `piece` of `whole`, of which no byte may be claimed.
Result<void> LocalServer::read_piece(std::uint64_t stream, const Binding& whole, const Binding& piece, std::byte* to) {
  const bool direct = device_->host_addressable();
  Staging staging;
  if (!direct) {
    auto given = device_->stage(size(piece));
    if (!given.has_value()) return given.error();
    staging = std::move(*given);
  }
  HeldTask task(*device_);
  task->kind = direct ? Task::Kind::Host : Task::Kind::Download;
  task->to = nullptr;
  task->bytes = size(piece);
  task->staging = std::move(staging);
  return read_in_turn(stream, task, *piece.memory, piece.range.begin, {memory_range(whole)},
                      [&](const Task& turn) { std::memcpy(to, direct ? turn.from : turn.staging.data(), size(piece)); });
}

Result<void> LocalServer::check_now(std::span<const Binding> ranges) {
  std::vector<MemoryRange> all;
  for (const Binding& binding : ranges) {
    if (auto ok = usable(binding, "what is checked", kItsClient); !ok.has_value()) return ok;
    if (!empty(binding)) all.push_back(memory_range(binding));
  }
  return store_.ensure_written(all);
}

Result<void> LocalServer::sync_now(std::span<const Binding> ranges) {
  After after;
  for (const Binding& binding : ranges) {
    if (auto ok = usable(binding, "what is waited for", kItsClient); !ok.has_value()) return ok;
    if (binding.memory == nullptr) continue;
    const std::lock_guard lock(enqueue_);
    order_write(*binding.memory, after);
  }
  if (auto ok = wait_for(after); !ok.has_value()) return ok;
  return check_now(ranges);
}

Result<void> LocalServer::sync_stream_now(std::uint64_t stream) {
  if (auto ok = captures_.refuse(stream, "a sync", Captures::Refused::Waits); !ok.has_value()) return ok;
  return wait_for(After(device_->last(queue_of(stream))));
}

Result<void> LocalServer::sync_all_now() {
  After all;
  for (std::uint32_t q = 0; q < kQueues; ++q) all.add(device_->last(q));
  auto result = wait_for(all);
  memory_->settle();
  return result;
}

// Also of an operation that has nothing to do.
Result<void> LocalServer::device_state(ErrorCode code) const {
  auto poison = device_->poisoned();
  if (!poison) return {};
  return lost_device(code, label(), std::move(*poison));
}

// --- launches -----------------------------------------------------------------------------------------------------------------

// The buffers as declared. Under the enqueue lock.
void LocalServer::collect_uses(const LaunchPlan& plan, const LaunchRequest& request) {
  uses_.clear();
  for (std::size_t i = 0; i < request.args.size(); ++i) {
    const ParamFacts& param = plan.facts.params[i];
    if (!param.is_buffer) continue;
    MemoryRange where = memory_range(request.args[i].binding);
    if (where.memory != 0) where.range = byte_hull(request.args[i], param);
    where.parameter = &param.name;
    uses_.push_back({where, param.access, param.strided});
  }
}

// There is no code to run: what the kernel declares to write is claimed.
Error LocalServer::failed_launch(const LaunchPlan& plan, const LaunchRequest& request, Error error) {
  error = of_launch(plan.facts, std::move(error));
  const std::lock_guard lock(enqueue_);
  collect_uses(plan, request);
  io_sets(uses_, {}, sets_);
  return ExecuteScope::failed_writing(store_, sets_.writes, std::move(error));
}

// Nothing ran and nothing is lost: what the launch was to read, an InOut among it, keeps what it had, and the right launch works. A
// declared Out, which it was to write whole, has nothing anybody may read until then, unless its bytes are another argument's, too.
void LocalServer::refuse(std::span<const RefusedUse> uses, const Error& error) {
  std::vector<Binding> elsewhere;
  std::vector<MemoryRange> here;
  for (const RefusedUse& use : uses) {
    if (!use.whole || *use.memory == nullptr || use.range.empty()) continue;
    const bool shared = std::any_of(uses.begin(), uses.end(), [&](const RefusedUse& other) {
      return &other != &use && *other.memory == *use.memory && other.range.begin < use.range.end && use.range.begin < other.range.end;
    });
    if (shared) continue;
    if ((*use.memory)->server.get() == this) {
      here.push_back({(*use.memory)->id, use.range});
      here.back().parameter = use.parameter;
    } else {
      elsewhere.push_back({*use.memory, use.range});
    }
  }
  {
    const std::lock_guard lock(enqueue_);
    ExecuteScope::failed_writing(store_, here, error);
  }
  for (const Binding& binding : elsewhere) binding.memory->server->claim(binding, error);
}

Error LocalServer::refused_transfer(const Binding& to, const Binding* from, Error error) {
  std::vector<RefusedUse> uses;
  for (const Binding* binding : {&to, from}) {
    if (binding == nullptr || binding->memory == nullptr) continue;
    ByteRange range = binding->range;
    range.end = std::min(range.end, binding->memory->storage->bytes);
    uses.push_back({&binding->memory, range, binding == &to, nullptr});
  }
  refuse(uses, error);
  return error;
}

Error LocalServer::refused_launch(const LaunchPlan& plan, const LaunchRequest& request, Error error) {
  error = of_launch(plan.facts, std::move(error));
  std::vector<RefusedUse> uses;
  if (request.args.size() == plan.facts.params.size()) {  // else nobody knows which is which
    for (std::size_t i = 0; i < request.args.size(); ++i) {
      const ParamFacts& param = plan.facts.params[i];
      const LaunchArg& arg = request.args[i];
      if (!param.is_buffer || !arg.is_buffer || arg.binding.memory == nullptr) continue;
      ByteRange range = byte_hull(arg, param);  // as the extents say, which may be what is wrong
      range.end = std::min({range.end, arg.binding.range.end, arg.binding.memory->storage->bytes});
      uses.push_back({&arg.binding.memory, range, param.access == ir::Access::Out && !param.strided, &param.name});
    }
  }
  refuse(uses, error);
  return error;
}

bool LocalServer::time_to_confirm() {
  if (++since_confirm_ < kConfirmEach) return false;
  since_confirm_ = 0;
  return true;
}

Result<std::uint32_t> LocalServer::take_fault_slot(const Program& program) {
  for (;;) {
    if (const auto slot = slots_.take(&program)) return *slot;
    const Event pending = confirm();
    if (const auto slot = slots_.take(&program)) return *slot;
    {
      const std::lock_guard lock(enqueue_);
      enqueue_.give_back_slots(slots_);
    }
    if (const auto slot = slots_.take(&program)) return *slot;
    const CallOrder::Wait wait(*device_, After(pending));
    if (!wait.allowed()) return CallOrder::too_much_behind();
    if (pending.position != 0) device_->wait(pending);
  }
}

// Its number is bounded, so the launch may have to wait for others, and for their lines to be told; but not where this is the thread that
// tells them.
LaunchLogMemory* LocalServer::take_log(const Program& program) {
  if (program.logs.empty()) return nullptr;
  const bool beyond = logs_.delivering();
  while (!beyond && logs_.full()) {
    const Event pending = confirm();
    logs_.deliver(CallOrder::current() == nullptr);
    if (!logs_.full()) break;
    const CallOrder::Wait wait(*device_, After(pending));
    if (!wait.allowed()) break;
    if (pending.position != 0) device_->wait(pending);
  }
  return logs_.take(program);
}

void LocalServer::confirm_in_passing() noexcept {
  try {
    (void)confirm();
  } catch (const std::bad_alloc&) {}  // what was found is kept until the next time
}

Event LocalServer::confirm() {
  enqueue_.flush();
  Event pending;
  std::optional<Error> unheard;  // the first failure that nothing carries
  After not_done;                // a queue runs in order: what comes after a task that is not over need not be asked for
  GivenBack over(slots_);        // many at a time
  log_.confirm([&](const LogView& view) -> Verdict {
    const Event event{static_cast<std::uint32_t>(view.stream), view.position};
    if (not_done.has(event.queue) || !device_->done(event)) {
      if (pending.position == 0) pending = event;
      not_done.add(event);
      return Verdict::pending();
    }
    std::optional<Error> fault;
    bool nothing = false;
    if (view.kind == LogKind::Graph) {
      GraphInstances::Faults faults = captures_.instances().over(view.slot);
      if (faults.trap) device_->trapped(*faults.trap);
      fault = std::move(faults.first);
    } else if (view.slot != kNoSlot && slots_.left_nothing(view.slot)) {
      over.add(view.slot);
    } else if (view.slot != kNoSlot) {
      nothing = slots_.did_nothing(view.slot);
      if (!nothing) fault = slots_.fault(view.slot);
      if (LaunchLogMemory* log = slots_.take_log(view.slot)) logs_.over(log);
      over.add(view.slot);
    }
    if (!fault) fault = device_->refused(event);
    if (!fault && device_->lost(event)) fault = device_->poisoned();
    if (!fault) return nothing ? Verdict::nothing() : Verdict::clean();
    if (fault->code() == ErrorCode::Trapped) device_->trapped(*fault);
    if (!view.writes && !unheard && !fault->is_device_poisoned()) unheard = fault;
    return Verdict::faulted(std::move(*fault));
  });
  captures_.instances().sweep();
  if (unheard) tell_unheard(*this, *unheard);
  return pending;
}

}  // namespace rt
}  // namespace kiln
