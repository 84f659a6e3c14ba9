// What is enqueued behind what, how an operation is executed, and what a capture forbids.
#include <algorithm>

#include "simcuda/driver_errors.h"
#include "simcuda/driver_state.h"

namespace kiln::simcuda {
namespace {

Clock::duration milliseconds(double ms) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double, std::milli>(ms));
}

std::string error_name_or_number(CUresult code) {
  const char* name = error_name(code);
  return name == nullptr ? std::to_string(code) : name;
}

bool matches(const std::string& pattern, const std::string& name) {
  if (pattern.empty()) return true;
  if (pattern.ends_with('*')) return name.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1));
  return pattern == name;
}

}  // namespace

std::vector<OperationPtr> Driver::predecessors(const Stream& stream) {
  std::vector<OperationPtr> before{stream.tail};
  Context& context = *stream.context;
  if (stream.is_null) {
    for (const auto& [handle, other] : streams)
      if (other->context == &context && other->blocking) before.push_back(other->tail);
    for (const auto& [tail, blocking] : context.orphans)
      if (blocking) before.push_back(tail);
  } else if (stream.blocking) {
    before.push_back(context.null_stream->tail);
  }
  return before;
}

std::vector<OperationPtr> Driver::all_work(const Context& context) {
  std::vector<OperationPtr> all;
  if (context.null_stream != nullptr) all.push_back(context.null_stream->tail);
  for (const auto& [handle, stream] : streams)
    if (stream->context == &context) all.push_back(stream->tail);
  for (const auto& [tail, blocking] : context.orphans) all.push_back(tail);
  return all;
}

void Driver::retire(Stream& stream) {
  auto& orphans = stream.context->orphans;
  std::erase_if(orphans, [](const auto& orphan) { return orphan.first->done; });
  if (stream.tail != nullptr && !stream.tail->done) orphans.emplace_back(stream.tail, stream.blocking);
}

OperationPtr Driver::operation_of(const std::shared_ptr<const Work>& work, unsigned stream_number) {
  auto operation = std::make_shared<Operation>();
  operation->work = work;
  operation->context = work->context;
  for (const SlowStream& slow : script.slow)
    if (!slow.stream.has_value() || *slow.stream == stream_number) operation->delay += milliseconds(slow.ms);
  if (work->kind != Work::Kind::Kernel) return operation;
  ++launches;
  const KernelFault* fault = due(script.kernels, [&](const KernelFault& f) { return matches(f.name, work->name); });
  if (fault == nullptr) {
    if (script.null_launches) operation->work = nullptr;  // only its place in the order
    return operation;
  }
  operation->injected = Failure{
      fault->code, "the launch of '" + work->name + "' ends with " + error_name_or_number(fault->code) + ", as the fault script says"};
  operation->injected_after_work = fault->runs;
  operation->delay += milliseconds(fault->after_ms);
  return operation;
}

CUresult Driver::enqueue(Stream& stream, std::shared_ptr<const Work> work, OperationPtr* made) {
  KILN_SIMCUDA_TRY(legacy_rule(stream));
  if (stream.capture != nullptr) {
    if (stream.capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    GraphNodes& nodes = stream.capture->nodes;
    nodes.push_back({std::move(work), stream.capture_after});
    stream.capture_after = {nodes.size() - 1};
    return CUDA_SUCCESS;
  }
  const OperationPtr operation = operation_of(work, stream.number);
  scheduler.submit(operation, predecessors(stream));
  stream.tail = operation;
  if (made != nullptr) *made = operation;
  return CUDA_SUCCESS;
}

OperationPtr Driver::mark(Stream& stream, const std::vector<OperationPtr>& after, bool is_event) {
  auto operation = std::make_shared<Operation>();
  operation->context = stream.context;
  operation->is_event = is_event;
  if (is_event) operation->delay = milliseconds(script.late_events_ms);
  std::vector<OperationPtr> before = predecessors(stream);
  before.insert(before.end(), after.begin(), after.end());
  scheduler.submit(operation, before);
  stream.tail = operation;
  return operation;
}

std::optional<Failure> Driver::execute(Operation& operation) {
  if (operation.delay != Clock::duration::zero()) scheduler.sleep(operation.delay);
  {
    const Lock lock(mutex);
    if (operation.context->poison != CUDA_SUCCESS) return std::nullopt;  // nothing runs in a context that failed
  }
  if (operation.work == nullptr) return std::nullopt;
  if (operation.injected.has_value() && !operation.injected_after_work) return operation.injected;
  std::optional<Failure> failure;
  try {
    failure = operation.work->run();
  } catch (const std::exception& e) {
    failure = Failure{CUDA_ERROR_UNKNOWN, operation.work->name + ": the simulated driver failed: " + e.what()};
  } catch (...) { failure = Failure{CUDA_ERROR_UNKNOWN, operation.work->name + ": an exception came out of it"}; }
  return failure.has_value() ? failure : operation.injected;
}

// --- capture ---------------------------------------------------------------------------------------------------------------------------

void Driver::invalidate(Capture& capture) { capture.invalidated = true; }

void Driver::end_capture(const std::shared_ptr<Capture>& capture) {
  capture->ended = true;
  for (Stream* stream : capture->streams) {
    stream->capture.reset();
    stream->capture_after.clear();
  }
  capture->streams.clear();
  std::erase(active_captures, capture);
}

bool Driver::captures(const Context& context, bool blocking_only) const {
  for (const auto& capture : active_captures)
    for (const Stream* stream : capture->streams)
      if (stream->context == &context && (stream->blocking || !blocking_only)) return true;
  return false;
}

CUresult Driver::unsafe_call() {
  const CUstreamCaptureMode thread = this_thread().capture_mode;
  if (thread == CU_STREAM_CAPTURE_MODE_RELAXED) return CUDA_SUCCESS;
  bool forbidden = false;
  for (const auto& capture : active_captures) {
    const bool own = capture->thread == std::this_thread::get_id();
    if (!own && thread == CU_STREAM_CAPTURE_MODE_THREAD_LOCAL) continue;
    if (own ? capture->mode == CU_STREAM_CAPTURE_MODE_RELAXED : capture->mode != CU_STREAM_CAPTURE_MODE_GLOBAL) continue;
    invalidate(*capture);
    forbidden = true;
  }
  return forbidden ? CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED : CUDA_SUCCESS;
}

CUresult Driver::legacy_rule(Stream& stream) {
  if (!stream.is_null || active_captures.empty() || !captures(*stream.context, true)) return CUDA_SUCCESS;
  for (const auto& capture : active_captures)
    if (std::any_of(capture->streams.begin(), capture->streams.end(),
                    [&](const Stream* s) { return s->context == stream.context && s->blocking; }))
      invalidate(*capture);
  return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
}

CUresult Driver::use_outside_capture(Stream& stream) {
  KILN_SIMCUDA_TRY(legacy_rule(stream));
  if (stream.capture != nullptr) {
    const bool was_invalid = stream.capture->invalidated;
    invalidate(*stream.capture);
    return was_invalid ? CUDA_ERROR_STREAM_CAPTURE_INVALIDATED : CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  }
  return unsafe_call();
}

}  // namespace kiln::simcuda
