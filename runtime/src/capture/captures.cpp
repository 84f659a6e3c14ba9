#include "src/capture/captures.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "src/local_server.h"
#include "src/memory_order.h"
#include "src/server_log.h"
#include "src/stream_text.h"

namespace kiln::rt {
namespace {

std::uint64_t size(const Binding& binding) { return binding.range.end - binding.range.begin; }

}  // namespace

Captures::Captures(LocalServer& server) : server_(server), instances_(*server.device_, server.logs_) {}

Captures::~Captures() = default;

// --- the capture of a stream ------------------------------------------------------------------------------------------------------

CaptureState* Captures::open(std::uint64_t stream, std::uint64_t token) {
  const std::uint32_t queue = queue_of(stream);
  return token != 0 && tokens_[queue] == token ? &states_[queue] : nullptr;
}

std::unique_ptr<MemoryCapture> Captures::close(std::uint32_t queue) {
  tokens_[queue] = 0;
  prepared_[queue].store(0, std::memory_order_release);
  recording_[queue].store(0, std::memory_order_release);
  return std::move(memories_[queue]);
}

Result<std::uint64_t> Captures::prepare(std::uint64_t stream, const std::source_location& where) {
  if (auto ok = server_.same_process(); !ok.has_value()) return ok.error();
  const std::uint32_t queue = queue_of(stream);
  auto memory = std::make_unique<MemoryCapture>(*server_.memory_, stream);
  const std::lock_guard lock(server_.enqueue_);
  if (auto ok = states_[queue].prepare(stream); !ok.has_value()) return ok.error();
  Result<void> primed;
  try {
    primed = memory->prime();
  } catch (const std::bad_alloc&) { primed = no_host_memory(); }
  if (!primed.has_value()) {
    (void)states_[queue].abort();
    return primed.error();
  }
  memories_[queue] = std::move(memory);
  places_[queue] = where;
  tokens_[queue] = ++last_token_;
  prepared_[queue].store(stream + 1, std::memory_order_release);
  return last_token_;
}

Result<void> Captures::begin(std::uint64_t stream, std::uint64_t token) {
  if (auto ok = server_.same_process(); !ok.has_value()) return ok.error();
  const std::lock_guard lock(server_.enqueue_);
  CaptureState* const state = open(stream, token);
  if (state == nullptr) return capture_not_prepared(stream, CapturePhase::None);
  if (auto ok = state->begin(); !ok.has_value()) return ok.error();
  if (auto ok = memories_[queue_of(stream)]->begin(); !ok.has_value()) return ok.error();  // primed: it does
  recording_[queue_of(stream)].store(stream + 1, std::memory_order_release);
  return {};
}

void Captures::abort(std::uint64_t stream, std::uint64_t token) noexcept {
  if (token == 0 || server_.forked()) return;
  std::unique_ptr<MemoryCapture> memory;  // these end without the lock, the buffers first
  Recording dropped;
  const std::lock_guard lock(server_.enqueue_);
  CaptureState* const state = open(stream, token);
  if (state == nullptr) return;
  dropped = state->abort();
  memory = close(queue_of(stream));
}

Result<std::shared_ptr<GraphState>> Captures::end(std::uint64_t stream, std::uint64_t token, std::uint64_t caller) {
  auto graph = end_now(stream, token, caller);
  if (logs(LogArea::Capture, LogLevel::Info)) {
    if (graph.has_value()) tell_graph(server_, stream, *(*graph)->body);
    else tell_no_graph(server_, stream, graph.error());
  }
  return graph;
}

Result<std::shared_ptr<GraphState>> Captures::end_now(std::uint64_t stream, std::uint64_t token, std::uint64_t caller) {
  if (auto ok = server_.same_process(); !ok.has_value()) return ok.error();
  std::unique_ptr<MemoryCapture> memory;
  CaptureState::Ended ended;
  std::source_location where;
  {
    const std::lock_guard lock(server_.enqueue_);
    CaptureState* const state = open(stream, token);
    if (state == nullptr) return capture_not_recording(stream, CapturePhase::None);
    where = places_[queue_of(stream)];
    Result<CaptureState::Ended> result = no_host_memory();
    try {
      result = state->end(caller);
    } catch (const std::bad_alloc&) {}
    memory = close(queue_of(stream));  // whatever it gives, the capture is over
    if (!result.has_value()) return result.error();
    ended = std::move(*result);
  }
  memory->end();
  Result<std::shared_ptr<GraphState>> graph = no_host_memory();
  try {
    if (!ended.owned) graph = capture_abandoned(ended.owner, caller, ended.failure);
    else if (ended.failure) graph = capture_doomed(stream, *ended.failure);
    else graph = seal(ended.recording, ended.recording.sets(), std::move(memory), where);
  } catch (const std::bad_alloc&) {}
  if (!graph.has_value()) claim(ended.recording.writes(), graph.error());
  return graph;
}

void Captures::claim(std::span<const MemoryRange> writes, const Error& why) noexcept {
  const std::lock_guard lock(server_.enqueue_);
  ExecuteScope::failed_writing(server_.store_, writes, why);
}

// The first instance is made now, so that what the device has against the graph shows here.
Result<std::shared_ptr<GraphState>> Captures::seal(const Recording& recording, const IoSets& sets, std::unique_ptr<MemoryCapture> memory,
                                                   const std::source_location& where) {
  auto body = std::make_shared<GraphBody>();
  body->id = next_graph_.fetch_add(1, std::memory_order_relaxed);
  body->name = std::make_shared<const std::string>("graph " + std::to_string(body->id));
  body->place = std::string(where.file_name()) + ":" + std::to_string(where.line());
  body->ops = recording.ops();
  std::vector<const Program*> named;
  for (std::uint32_t i = 0; i < body->ops.size(); ++i) {
    const Program* program = body->ops[i]->program;
    if (program == nullptr) continue;
    body->launches.push_back(i);
    if (named.size() <= 3 && std::find(named.begin(), named.end(), program) == named.end()) named.push_back(program);
  }
  std::string label = "a graph";
  for (std::size_t i = 0; i < named.size(); ++i) label += (i == 0 ? " of " : ", ") + (i < 3 ? *named[i]->name : std::string("..."));
  body->label = &instances_.keep_label(std::move(label));
  auto graph = std::make_shared<GraphState>(server_.shared_from_this(), server_);
  graph->memory = std::move(memory);
  graph->body = std::move(body);
  graph->sets = sets;
  graph->touches = recording.touches();
  graph->lacking = recording.lacking();
  if (graph->body->ops.empty() || !graph->lacking.empty()) return graph;
  auto instance = instances_.make(graph->body, graph->instances);
  if (!instance.has_value()) return instance.error();
  instances_.give_back(**instance);
  return graph;
}

Result<void> Captures::watch_refused(std::uint64_t stream, const Error& why) {
  if (!server_.forked()) server_.profiler_.failed(queue_of(stream), why);
  return watch(stream, why);
}

// --- what is recorded -------------------------------------------------------------------------------------------------------------

void Captures::fail(std::uint64_t stream, const Error& why) {
  const std::lock_guard lock(server_.enqueue_);
  CaptureState& state = states_[queue_of(stream)];
  if (state.recording() != nullptr && state.owner() == stream) state.fail(why);
}

Result<void> Captures::refuse(std::uint64_t stream, const char* what, Refused how) {
  if (!recording(stream)) return {};
  Error error =
      capture_error("NotInCapture", std::string(what) + " on " + stream_text(stream) + ", which is being recorded: " +
                                        (how == Refused::Waits ? "what it would wait for does not run before the graph is replayed; "
                                                                 "end the capture first, or use another stream"
                                                               : "a graph cannot hold it; issue it outside of the capture"));
  if (how == Refused::IsPart) fail(stream, error);
  return error;
}

// Under the lock of enqueueing `fill(IoSets&, touches)` says what the operation does with memory and gives its operations. Older claims on
// what it is to write stay: nothing is written yet.
template <class Fill>
std::optional<Result<void>> Captures::record(std::uint64_t stream, std::string_view name, Fill&& fill) {
  std::unique_lock lock(server_.enqueue_);
  CaptureState& state = states_[queue_of(stream)];
  Recording* const recording = state.owner() == stream ? state.recording() : nullptr;
  if (recording == nullptr) return std::nullopt;
  IoSets& sets = server_.sets_;
  const struct Emptied {  // the recording has the memory
    std::vector<GraphTouch>& touches;
    ~Emptied() { touches.clear(); }
  } emptied{touches_};
  const std::span<const std::shared_ptr<const RecordedOp>> ops = fill(sets, touches_);
  recording->uncovered(sets.reads, reads_);
  ExecuteScope scope = ExecuteScope::launching(server_.store_, name, reads_, sets.writes, {});
  const Outcome<void> outcome = scope.execute([&]() -> Result<void> {
    for (const GraphTouch& touch : touches_) {
      if (!touch.writes) continue;
      if (auto error = server_.write_blocked(*touch.memory)) return std::move(*error);
    }
    for (const GraphTouch& touch : touches_) memories_[queue_of(stream)]->use(*touch.memory->storage);
    recording->add(ops, reads_, sets.writes, sets.covers, touches_);
    return {};
  });
  if (outcome.kind == OutcomeKind::Executed) return Result<void>();
  state.fail(outcome.result.error());
  return outcome.result;
}

std::optional<Result<void>> Captures::record_launch(std::uint64_t stream, const LaunchPlan& plan, const Program& program,
                                                    const LaunchRequest& request) {
  if (!recording(stream)) return std::nullopt;
  Task task;
  LocalServer::describe_launch(task, *program.code, request.config);
  const auto op = std::make_shared<RecordedOp>();
  op->program = &program;
  op->node.program = task.program;
  op->node.grid = task.grid;
  op->node.block = task.block;
  op->node.cluster = task.cluster;
  op->node.dynamic_shared = task.dynamic_shared;
  op->node.cooperative = task.cooperative;
  for (const ir::ParamField& field : plan.layout.fields) {
    if (field.kind == ir::ParamField::Kind::Fault) op->fault_at = field.offset;
    if (field.kind == ir::ParamField::Kind::Log) op->log_at = field.offset;
  }
  const std::shared_ptr<const RecordedOp> ops[] = {op};
  auto recorded = record(stream, *program.name, [&](IoSets& sets, std::vector<GraphTouch>& touches) {
    server_.fill_params(plan, request, task, 0, nullptr);
    op->params.assign(task.params, task.params + plan.layout.bytes);
    server_.collect_uses(plan, request);
    io_sets(server_.uses_, plan.io, sets);
    server_.for_each_used(plan, request, [&](const Memory& memory, bool writes) { touches.push_back({memory, writes}); });
    return std::span(ops);
  });
  if (recorded && !recorded->has_value()) return of_launch(plan.facts, recorded->error());
  return recorded;
}

std::optional<Result<void>> Captures::record_transfer(std::uint64_t stream, std::string_view name, RecordedOp given, const Binding& to,
                                                      const Binding* from) {
  if (!recording(stream)) return std::nullopt;
  for (const Binding* used : {&to, from}) {
    if (used == nullptr) continue;
    if (auto ok = server_.map_for(to, *used); !ok.has_value()) {
      fail(stream, ok.error());
      return ok;
    }
  }
  const auto op = std::make_shared<RecordedOp>(std::move(given));
  const std::shared_ptr<const RecordedOp> ops[] = {op};
  return record(stream, name, [&](IoSets& sets, std::vector<GraphTouch>& touches) {
    op->node.to = address(to);
    op->node.bytes = size(to);
    sets.clear();
    sets.writes.push_back(memory_range(to));
    sets.covers.push_back(memory_range(to));
    touches.push_back({to.memory, true});
    if (from != nullptr) {
      op->node.from = address(*from);
      sets.reads.push_back(memory_range(*from));
      touches.push_back({from->memory, false});
    }
    return std::span(ops);
  });
}

std::optional<Result<void>> Captures::record_write(std::uint64_t stream, const Binding& to, const void* from) {
  if (!recording(stream)) return std::nullopt;
  auto block = instances_.blocks().take(size(to));
  if (!block.has_value()) {
    const MemoryRange target = memory_range(to);
    const std::lock_guard lock(server_.enqueue_);
    return ExecuteScope::failed_writing(server_.store_, {&target, 1}, block.error());
  }
  std::memcpy(block->host(), from, size(to));
  RecordedOp op;
  op.node.kind = Task::Kind::Upload;
  op.node.from = block->host();
  op.bytes = std::move(*block);
  return record_transfer(stream, "write", std::move(op), to, nullptr);
}

std::optional<Result<void>> Captures::record_fill(std::uint64_t stream, const Binding& to) {
  if (!recording(stream)) return std::nullopt;
  RecordedOp op;
  op.node.kind = Task::Kind::Zero;
  return record_transfer(stream, "write", std::move(op), to, nullptr);
}

std::optional<Result<void>> Captures::record_copy(std::uint64_t stream, const Binding& to, const Binding& from) {
  if (!recording(stream)) return std::nullopt;
  RecordedOp op;
  op.node.kind = Task::Kind::Copy;
  return record_transfer(stream, "copy", std::move(op), to, &from);
}

std::optional<Result<void>> Captures::record_replay(std::uint64_t stream, const GraphState& graph) {
  if (!recording(stream)) return std::nullopt;
  return record(stream, *graph.body->name, [&](IoSets& sets, std::vector<GraphTouch>& touches) {
    sets = graph.sets;
    touches = graph.touches;
    if (!graph.lacking.empty()) states_[queue_of(stream)].recording()->lacks(graph.lacking);
    return std::span(graph.body->ops);
  });
}

void Captures::lacks(std::uint64_t stream, const LaunchPlan& plan, const LaunchRequest& request) {
  if (!recording(stream)) return;
  const std::lock_guard lock(server_.enqueue_);
  CaptureState& state = states_[queue_of(stream)];
  Recording* const recording = state.owner() == stream ? state.recording() : nullptr;
  if (recording == nullptr) return;
  server_.collect_uses(plan, request);
  io_sets(server_.uses_, plan.io, server_.sets_);
  std::vector<GraphTouch> touches;
  server_.for_each_used(plan, request, [&](const Memory& memory, bool writes) { touches.push_back({memory, writes}); });
  recording->add({}, {}, server_.sets_.writes, server_.sets_.covers, touches);
  recording->lacks(plan.facts.kernel);
}

}  // namespace kiln::rt
