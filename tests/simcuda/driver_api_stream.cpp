// Entry points: streams and events.
#include <algorithm>
#include <cmath>
#include <limits>

#include "simcuda/driver_state.h"

namespace kiln::simcuda {
namespace {

bool all_done(const std::vector<OperationPtr>& operations) {
  return std::all_of(operations.begin(), operations.end(), [](const OperationPtr& o) { return o == nullptr || o->done; });
}

// A captured event stands for nodes of a graph, not for work that will be done.
CUresult refuse_captured(Driver& driver, Event& event) {
  if (event.capture == nullptr) return CUDA_SUCCESS;
  if (!event.capture->ended) driver.invalidate(*event.capture);
  return CUDA_ERROR_CAPTURED_EVENT;
}

CUresult wait_for_captured(Driver& driver, Stream& stream, const Event& event) {
  Capture& capture = *event.capture;
  if (capture.ended) return CUDA_ERROR_CAPTURED_EVENT;
  if (capture.invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
  if (stream.is_null) {
    driver.invalidate(capture);
    return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
  }
  if (stream.capture != nullptr && stream.capture != event.capture) {
    driver.invalidate(capture);
    driver.invalidate(*stream.capture);
    return CUDA_ERROR_STREAM_CAPTURE_MERGE;
  }
  if (stream.capture == nullptr) {  // it joins the capture
    stream.capture = event.capture;
    capture.streams.insert(&stream);
  }
  for (const std::size_t node : event.capture_after)
    if (std::find(stream.capture_after.begin(), stream.capture_after.end(), node) == stream.capture_after.end())
      stream.capture_after.push_back(node);
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace kiln::simcuda

namespace kiln::cuda {
using namespace kiln::simcuda;

CUresult cuStreamCreate(CUstream* handle, unsigned flags) {
  return context_entry_point(Entry::cuStreamCreate, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    if (handle == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    stream->context = &context;
    stream->number = ++driver.streams_made;
    stream->blocking = flags == CU_STREAM_DEFAULT;
    *handle = driver.streams.add(std::move(stream));
    return CUDA_SUCCESS;
  });
}

namespace {

// Of all that these devices are made after.
constexpr int kLeastPriority = 0, kGreatestPriority = -5;

}  // namespace

CUresult cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  return context_entry_point(Entry::cuCtxGetStreamPriorityRange, [&](Driver&, Lock&, Context&) -> CUresult {
    if (least != nullptr) *least = kLeastPriority;
    if (greatest != nullptr) *greatest = kGreatestPriority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamCreateWithPriority(CUstream* handle, unsigned flags, int priority) {
  return context_entry_point(Entry::cuStreamCreateWithPriority, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    if (handle == nullptr || flags > CU_STREAM_NON_BLOCKING) return CUDA_ERROR_INVALID_VALUE;
    auto stream = std::make_shared<Stream>();
    stream->context = &context;
    stream->number = ++driver.streams_made;
    stream->blocking = flags == CU_STREAM_DEFAULT;
    stream->priority = std::clamp(priority, kGreatestPriority, kLeastPriority);
    *handle = driver.streams.add(std::move(stream));
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamGetPriority(CUstream handle, int* priority) {
  return context_entry_point(Entry::cuStreamGetPriority, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (priority == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *priority = stream->priority;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamDestroy_v2(CUstream handle) {
  return entry_point(Entry::cuStreamDestroy, [&](Driver& driver, Lock&) -> CUresult {
    const std::shared_ptr<Stream> stream = driver.streams.find(handle);
    if (stream == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Context* current = nullptr;
    if (const CUresult code = driver.current(current); code == CUDA_ERROR_INVALID_CONTEXT) return code;
    if (const std::shared_ptr<Capture> capture = stream->capture; capture != nullptr) {
      driver.invalidate(*capture);
      if (capture->origin == stream.get()) driver.end_capture(capture);
      else capture->streams.erase(stream.get());
    }
    driver.retire(*stream);
    driver.streams.remove(handle);
    return stream->context->poison;
  });
}

CUresult cuStreamGetCtx(CUstream handle, CUcontext* result) {
  return context_entry_point(Entry::cuStreamGetCtx, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    if (result == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *result = stream->context->handle;
    return CUDA_SUCCESS;
  });
}

CUresult cuStreamSynchronize(CUstream handle) {
  return context_entry_point(Entry::cuStreamSynchronize, [&](Driver& driver, Lock& lock, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    KILN_SIMCUDA_TRY(driver.use_outside_capture(*stream));
    Context& where = *stream->context;  // the stream may be destroyed while we wait
    driver.scheduler.wait(lock, stream->is_null ? driver.predecessors(*stream) : std::vector{stream->tail});
    return where.poison;
  });
}

CUresult cuStreamQuery(CUstream handle) {
  return context_entry_point(Entry::cuStreamQuery, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    KILN_SIMCUDA_TRY(driver.use_outside_capture(*stream));
    return all_done(stream->is_null ? driver.predecessors(*stream) : std::vector{stream->tail}) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent event_handle, unsigned flags) {
  return context_entry_point(Entry::cuStreamWaitEvent, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    Event* event = nullptr;
    KILN_SIMCUDA_TRY(driver.stream(handle, context, stream));
    KILN_SIMCUDA_TRY(driver.event(event_handle, event));
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    KILN_SIMCUDA_TRY(driver.legacy_rule(*stream));
    if (stream->capture != nullptr && stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    if (event->capture != nullptr) return wait_for_captured(driver, *stream, *event);
    if (event->recorded == nullptr) return CUDA_SUCCESS;  // never recorded: nothing to wait for
    if (stream->capture != nullptr) {
      driver.invalidate(*stream->capture);
      return CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (!event->recorded->done) driver.mark(*stream, {event->recorded}, false);
    return CUDA_SUCCESS;
  });
}

CUresult cuEventCreate(CUevent* handle, unsigned flags) {
  return context_entry_point(Entry::cuEventCreate, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    if (handle == nullptr || (flags & ~(CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING)) != 0) return CUDA_ERROR_INVALID_VALUE;
    auto event = std::make_shared<Event>();
    event->context = &context;
    event->timing = (flags & CU_EVENT_DISABLE_TIMING) == 0;
    *handle = driver.events.add(std::move(event));
    return CUDA_SUCCESS;
  });
}

CUresult cuEventDestroy_v2(CUevent handle) {
  return entry_point(Entry::cuEventDestroy, [&](Driver& driver, Lock&) -> CUresult {
    const std::shared_ptr<Event> event = driver.events.find(handle);
    if (event == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    Context* current = nullptr;
    if (const CUresult code = driver.current(current); code == CUDA_ERROR_INVALID_CONTEXT) return code;
    driver.events.remove(handle);
    return event->context->poison;
  });
}

CUresult cuEventRecord(CUevent handle, CUstream stream_handle) {
  return context_entry_point(Entry::cuEventRecord, [&](Driver& driver, Lock&, Context& context) -> CUresult {
    Stream* stream = nullptr;
    Event* event = nullptr;
    KILN_SIMCUDA_TRY(driver.event(handle, event));
    KILN_SIMCUDA_TRY(driver.stream(stream_handle, context, stream));
    if (event->context != stream->context) return CUDA_ERROR_INVALID_HANDLE;
    KILN_SIMCUDA_TRY(driver.legacy_rule(*stream));
    if (stream->capture != nullptr) {
      if (stream->capture->invalidated) return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
      event->recorded.reset();
      event->capture = stream->capture;
      event->capture_after = stream->capture_after;
      return CUDA_SUCCESS;
    }
    event->recorded = driver.mark(*stream, {}, true);
    event->capture.reset();
    event->capture_after.clear();
    return CUDA_SUCCESS;
  });
}

CUresult cuEventQuery(CUevent handle) {
  return context_entry_point(Entry::cuEventQuery, [&](Driver& driver, Lock&, Context&) -> CUresult {
    Event* event = nullptr;
    KILN_SIMCUDA_TRY(driver.event(handle, event));
    KILN_SIMCUDA_TRY(refuse_captured(driver, *event));
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    return all_done({event->recorded}) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
  });
}

CUresult cuEventSynchronize(CUevent handle) {
  return context_entry_point(Entry::cuEventSynchronize, [&](Driver& driver, Lock& lock, Context&) -> CUresult {
    Event* event = nullptr;
    KILN_SIMCUDA_TRY(driver.event(handle, event));
    KILN_SIMCUDA_TRY(refuse_captured(driver, *event));
    KILN_SIMCUDA_TRY(driver.unsafe_call());
    Context& where = *event->context;
    driver.scheduler.wait(lock, {event->recorded});
    return where.poison;
  });
}

CUresult cuEventElapsedTime(float* milliseconds, CUevent start_handle, CUevent end_handle) {
  return context_entry_point(Entry::cuEventElapsedTime, [&](Driver& driver, Lock&, Context&) -> CUresult {
    Event *start = nullptr, *end = nullptr;
    KILN_SIMCUDA_TRY(driver.event(start_handle, start));
    KILN_SIMCUDA_TRY(driver.event(end_handle, end));
    if (milliseconds == nullptr) return CUDA_ERROR_INVALID_VALUE;
    if (start->context != end->context || !start->timing || !end->timing) return CUDA_ERROR_INVALID_HANDLE;
    KILN_SIMCUDA_TRY(refuse_captured(driver, *start));
    KILN_SIMCUDA_TRY(refuse_captured(driver, *end));
    if (start->recorded == nullptr || end->recorded == nullptr) return CUDA_ERROR_INVALID_HANDLE;
    if (!all_done({start->recorded, end->recorded})) return CUDA_ERROR_NOT_READY;
    const std::chrono::duration<double, std::milli> exact = end->recorded->finished - start->recorded->finished;
    // Never less than the true time, and never nothing for two events in their order.
    float rounded = static_cast<float>(exact.count());
    if (rounded >= 0 && rounded <= exact.count()) rounded = std::nextafter(rounded, std::numeric_limits<float>::infinity());
    constexpr float resolution = 0.0005f;
    *milliseconds = start != end && exact.count() >= 0 ? std::max(rounded, resolution) : static_cast<float>(exact.count());
    return CUDA_SUCCESS;
  });
}

}  // namespace kiln::cuda
